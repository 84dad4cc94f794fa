"""Requests about breakpoints: of sources, labels, addresses, data, messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.debug.dap.arguments import Arguments, Refused, address_in, whole_in
from vc4lab.debug.dap.requests import TEXT, Requests
from vc4lab.debug.expressions import Expression, ExpressionError
from vc4lab.diagnostics.catalogue import catalogue

if TYPE_CHECKING:
    from vc4lab.debug.stops import Breakpoint


class BreakpointRequests(Requests):
    """Sets the breakpoints that an editor has."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: dict[str, list[int]] = {}
        """Numbers of breakpoints by the request and file that have set them."""

    def _renew(self, group: str, wanted: object, add: Callable[[dict[str, Any]], Breakpoint]) -> Any:
        """The breakpoints of a request take the place of those that it has set before."""
        points = self.session.breakpoints
        for number in self._groups.pop(group, ()):
            if number in points.items:
                points.delete(number)
        answers = []
        for one in wanted if isinstance(wanted, list) else []:
            try:
                if not isinstance(one, dict):
                    raise Refused("a breakpoint is an object")
                item = add(one)
            except (ExpressionError, Refused) as error:
                answers.append({"verified": False, "message": str(error)})
                continue
            self._groups.setdefault(group, []).append(item.number)
            answers.append({"verified": True, "id": item.number, **self._where(item)})
        return {"breakpoints": answers}

    def _where(self, item: Breakpoint) -> dict[str, Any]:
        addresses = sorted(getattr(item, "addresses", ()))
        if not addresses:
            return {}
        found: dict[str, Any] = {"instructionReference": f"0x{addresses[0]:08x}"}
        place = self.session.source.place(addresses[0])
        if place is not None:
            found |= {"line": self._line(place.line), "source": self._source_of(place.file)}
        return found

    def _options(self, one: Mapping[str, Any]) -> dict[str, Any]:
        """Condition and hit condition."""
        options: dict[str, Any] = {}
        condition, hits = one.get("condition"), one.get("hitCondition")
        if condition:
            options["condition"] = Expression(str(condition))
            options["condition"].value(self.session.view())
        if hits:
            text = str(hits).strip().lstrip(">=").strip()
            if not text.isdecimal() or not int(text[:9]) > 0:
                raise Refused(f"{str(hits)[:20]!r} is no number of times")
            options["skip"] = int(text[:9]) - 1
        return options

    def setBreakpoints(self, arguments: Arguments) -> Any:
        """Replace the breakpoints of a source file."""
        source = arguments.get("source")
        path = source.get("path") if isinstance(source, dict) else None
        if isinstance(source, dict) and source.get("sourceReference") == TEXT:
            path = str(self.session.source.path)
        if not isinstance(path, str):
            raise Refused("a source has no path")

        def add(one: dict[str, Any]) -> Breakpoint:
            line = whole_in(one, "line") + (0 if self._lines_from_1 else 1)
            addresses = self.session.source.addresses(line, path)
            if not addresses:
                raise Refused(f"there is no instruction at or after line {line}")
            text = f"{Path(path).name}:{line}"
            return self.session.breakpoints.add_address(addresses, text, **self._options(one))

        return self._renew(f"source {path}", arguments.get("breakpoints"), add)

    def setFunctionBreakpoints(self, arguments: Arguments) -> Any:
        """At labels."""

        def add(one: dict[str, Any]) -> Breakpoint:
            name = str(one.get("name", ""))
            return self.session.add_address(self.session.locate(name), text=name, **self._options(one))

        return self._renew("functions", arguments.get("breakpoints"), add)

    def setInstructionBreakpoints(self, arguments: Arguments) -> Any:
        """At addresses."""

        def add(one: dict[str, Any]) -> Breakpoint:
            address = address_in(one.get("instructionReference")) + whole_in(one, "offset")
            return self.session.add_address(self.session.locate(f"*{address}"), **self._options(one))

        return self._renew("instructions", arguments.get("breakpoints"), add)

    def dataBreakpointInfo(self, arguments: Arguments) -> dict[str, Any]:
        """Whether a variable can be watched."""
        reference, name = arguments.get("variablesReference"), arguments.get("name")
        expression, memory, qpu = str(name or ""), None, self.session.selected
        if reference is not None:
            try:
                qpu = self.variables.qpu_of(reference)
                nodes = self.variables.nodes(reference)
            except (KeyError, TypeError):
                raise Refused("these variables are of an earlier stop") from None
            node = next((one for one in nodes if one.name == name), None)
            if node is not None:
                expression, memory = node.evaluate, node.memory
        if memory is not None:
            area = self.session.areas.get(expression)
            size = area.size if area is not None else 4
            types = ["read", "write", "readWrite"]
            return {
                "dataId": f"memory {memory} {size}",
                "description": f"{size} bytes at 0x{memory:08x}",
                "accessTypes": types,
            }
        try:
            Expression(expression).value(self.session.view(qpu))
        except ExpressionError as error:
            return {"dataId": None, "description": str(error)}
        return {
            "dataId": f"value {qpu} {expression}",
            "description": f"{expression} of QPU {qpu} changes",
            "accessTypes": ["write"],
        }

    def setDataBreakpoints(self, arguments: Arguments) -> Any:
        """Values that change, memory that is accessed."""

        def add(one: dict[str, Any]) -> Breakpoint:
            kind, _, rest = str(one.get("dataId", "")).partition(" ")
            points, options = self.session.breakpoints, self._options(one)
            number, _, more = rest.partition(" ")
            if not number.isdecimal() or len(number) > 10:
                raise Refused("there is no such data")
            if kind == "memory" and more.isdecimal():
                access = one.get("accessType", "write")
                reads, writes = access in ("read", "readWrite"), access != "read"
                return points.add_access(int(number), int(more[:10]), reads=reads, writes=writes, **options)
            if kind != "value" or int(number) not in self.session.qpus:
                raise Refused("there is no such data")
            return points.add_watch(Expression(more), qpu=int(number), **options)

        return self._renew("data", arguments.get("breakpoints"), add)

    def setExceptionBreakpoints(self, arguments: Arguments) -> Any:
        """Messages."""
        filters, options = arguments.get("filters"), arguments.get("filterOptions")
        wanted: list[dict[str, Any]] = []
        if isinstance(filters, list):
            wanted += [{} for one in filters if one == "messages"]
        if isinstance(options, list):
            wanted += [one for one in options if isinstance(one, dict)]

        def add(one: dict[str, Any]) -> Breakpoint:
            code = str(one.get("condition") or "").strip().upper()
            if code and code not in catalogue():
                raise Refused(f"there is no message {code[:20]!r}")
            return self.session.breakpoints.add_message(code)

        return self._renew("messages", wanted, add)
