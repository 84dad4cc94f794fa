"""The requests of an editor, carried out on a session.

A request's method is named as the protocol names the command. What an editor asks that makes no sense
is a Refused with a sentence, which it shows.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.debug.console import Console
from vc4lab.debug.console.command import take_form, value_text
from vc4lab.debug.dap.variables import Variables
from vc4lab.debug.expressions import Expression, ExpressionError, register_key
from vc4lab.debug.launch import Launch, LaunchError
from vc4lab.debug.stops import Breakpoint, Cause, Stop
from vc4lab.debug.texts import instruction_text, stop_text
from vc4lab.diagnostics import Severity
from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.ranges import BUDGET, QPU_COUNT

if TYPE_CHECKING:
    from vc4lab.debug.session import Session
    from vc4lab.diagnostics import Diagnostic

CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsStepBack": True,
    "supportsSetVariable": True,
    "supportsSetExpression": True,
    "supportsRestartRequest": True,
    "supportsTerminateRequest": True,
    "supportsDataBreakpoints": True,
    "supportsReadMemoryRequest": True,
    "supportsWriteMemoryRequest": True,
    "supportsDisassembleRequest": True,
    "supportsInstructionBreakpoints": True,
    "supportsSteppingGranularity": True,
    "supportsExceptionFilterOptions": True,
    "exceptionBreakpointFilters": [
        {
            "filter": "messages",
            "label": "Messages",
            "description": "Stops when vc4lab reports something.",
            "supportsCondition": True,
            "conditionDescription": "a code, such as QPU-061",
        }
    ],
}
REASONS = {
    Cause.START: "entry",
    Cause.STEP: "step",
    Cause.BREAKPOINT: "breakpoint",
    Cause.BKPT: "breakpoint",
    Cause.WATCH: "data breakpoint",
    Cause.ACCESS: "data breakpoint",
    Cause.MESSAGE: "exception",
    Cause.FAULT: "exception",
    Cause.DEADLOCK: "exception",
    Cause.ENDED: "pause",
    Cause.PAUSED: "pause",
    Cause.LIMIT: "pause",
}
MOST_READ = 1 << 20
"""Bytes of memory in one answer."""
MOST_INSTRUCTIONS = 4096
_LOOKING = ("print", "p", "info", "i", "x", "list", "l", "disassemble", "where", "bt", "help", "h", "output")
"""Commands of the console that an editor's console takes, too."""

Arguments = Mapping[str, Any]
Work = Callable[[], Stop]


class Refused(Exception):  # noqa: N818 - said to the user as it is
    """A request that cannot be carried out."""


class Adapter:
    """The state of one editor's session.

    launch: what the command line has named, if it has. emit: sends an event. start: has work done in
    another thread; `stopped` is called when it is through.
    """

    def __init__(
        self, launch: Launch, emit: Callable[[str, dict[str, Any]], None], start: Callable[[Work], None]
    ) -> None:
        self._given = launch
        self.emit = emit
        self._start = start
        self._session: Session | None = None
        self._variables: Variables | None = None
        self._console: Console | None = None
        self._lines_from_1 = True
        self._stop_on_entry = False
        self._printed: list[str] = []
        self._groups: dict[str, list[int]] = {}
        """Numbers of breakpoints by the request and file that have set them."""
        self.running = False
        self.ended = False

    @property
    def session(self) -> Session:
        """Return the session that was launched. Raises Refused."""
        if self._session is None:
            raise Refused("nothing was launched yet")
        return self._session

    @property
    def variables(self) -> Variables:
        """Its variables. Raises Refused."""
        if self._variables is None:
            raise Refused("nothing was launched yet")
        return self._variables

    # -- the beginning and the end -----------------------------------------------------------------

    def initialize(self, arguments: Arguments) -> dict[str, Any]:
        """The first request."""
        self._lines_from_1 = arguments.get("linesStartAt1", True) is not False
        return dict(CAPABILITIES)

    def launch(self, arguments: Arguments) -> None:
        """A program, as the arguments or the command line name it."""
        launch = self._launch_of(arguments)
        try:
            self._session, notes = launch.session()
        except LaunchError as error:
            raise Refused(str(error)) from None
        self._variables = Variables(self._session)
        self._console = Console(self._session, self._printed.append)
        self._session.on_message = self._message
        for text in notes:
            self.print(text, "stderr")
        for _, item in self._session.messages:
            self._message(item)
        self._stop_on_entry = arguments.get("stopOnEntry", False) is True
        self.emit("initialized", {})

    attach = launch

    def _launch_of(self, arguments: Arguments) -> Launch:
        given = self._given
        program = arguments.get("program")
        if program is None:
            if not given.is_named:
                raise Refused('the configuration has no "program"')
            return given
        if not isinstance(program, str) or not program or "\0" in program:
            raise Refused('"program" is the path of a file')
        qpus, budget = arguments.get("qpus", 1), arguments.get("budget")
        for name, allowed, value in (("qpus", QPU_COUNT, qpus), ("budget", BUDGET, budget)):
            if value is not None:
                if isinstance(value, bool):
                    raise Refused(f'"{name}" is a number {allowed}')
                try:
                    allowed.check(value)
                except (ValueError, TypeError):
                    raise Refused(f'"{name}" is a number {allowed}') from None
        return Launch(
            Path(program),
            qpus,
            _texts(arguments, "uniforms"),
            _texts(arguments, "memory"),
            _text(arguments, "entry"),
            _text(arguments, "symbol"),
            budget,
            arguments.get("check", True) is not False,
            _text(arguments, "dialect"),
            [Path(folder) for folder in _texts(arguments, "include")],
            given.unknowns,
            Path(program).parent,
        )

    def configurationDone(self, arguments: Arguments) -> None:
        """All breakpoints are set: go."""
        session = self.session
        if self._stop_on_entry:
            self._announce(session.stop)
        else:
            self._go(session.proceed)

    def restart(self, arguments: Arguments) -> None:
        """Back to the beginning."""
        stop = self.session.restart()
        self.variables.clear()
        self._announce(stop)

    def disconnect(self, arguments: Arguments) -> None:
        """The editor leaves."""
        if self._session is not None:
            self._session.pause()
        self.ended = True

    def terminate(self, arguments: Arguments) -> None:
        """The program is to end."""
        self.disconnect(arguments)
        self.emit("terminated", {})

    # -- going on ----------------------------------------------------------------------------------

    def _go(self, work: Work) -> None:
        self.variables.clear()
        self.running = True
        self._start(work)

    def _go_from(self, arguments: Arguments, work: Work) -> dict[str, Any]:
        self._select(arguments)
        self._go(work)
        return {"allThreadsContinued": True}

    def _select(self, arguments: Arguments) -> None:
        self.session.selected = self._qpu(arguments.get("threadId"))

    def _qpu(self, thread: object) -> int:
        """The QPU of a thread, or of its frame."""
        if not isinstance(thread, int) or thread - 1 not in self.session.qpus:
            raise Refused("there is no such QPU")
        return thread - 1

    def continue_(self, arguments: Arguments) -> dict[str, Any]:
        """Go on; from the end of all programs there is nothing, so it is the end."""
        session = self.session
        if not session.alive and session.stop.cause in (Cause.ENDED, Cause.FAULT):
            self.finish()
            return {}
        return self._go_from(arguments, session.proceed)

    def finish(self) -> None:
        """The programs have ended, and the editor does not look any longer."""
        faults = any(qpu.machine.finished != "end" for qpu in self.session.qpus.values())
        self.emit("exited", {"exitCode": int(faults)})
        self.emit("terminated", {})

    def next(self, arguments: Arguments) -> dict[str, Any]:
        """A line, subroutines as a whole."""
        lines = arguments.get("granularity") != "instruction"
        return self._go_from(arguments, lambda: self.session.step_over(lines=lines))

    def stepIn(self, arguments: Arguments) -> dict[str, Any]:
        """A line."""
        if arguments.get("granularity") == "instruction":
            return self._go_from(arguments, self.session.step)
        return self._go_from(arguments, self.session.step_line)

    def stepOut(self, arguments: Arguments) -> dict[str, Any]:
        """QPUs have no stack that says where out is: to the next branch to a register, and over it."""
        return self._go_from(arguments, self.session.step_out)

    def stepBack(self, arguments: Arguments) -> dict[str, Any]:
        """A line back."""
        if arguments.get("granularity") == "instruction":
            return self._go_from(arguments, self.session.back)
        return self._go_from(arguments, self.session.back_line)

    def reverseContinue(self, arguments: Arguments) -> dict[str, Any]:
        """Back to the last breakpoint."""
        return self._go_from(arguments, self.session.proceed_back)

    def pause(self, arguments: Arguments) -> None:
        """While it runs."""
        if self.running:
            self.session.pause()

    def stopped(self, stop: Stop) -> None:
        """The work that was started is through."""
        self.running = False
        self._announce(stop)

    def _announce(self, stop: Stop) -> None:
        text = stop_text(self.session, stop)
        body: dict[str, Any] = {
            "reason": REASONS[stop.cause],
            "threadId": stop.qpu + 1,
            "allThreadsStopped": True,
        }
        if text:
            body["description"] = body["text"] = text
        if stop.breakpoint is not None:
            body["hitBreakpointIds"] = [stop.breakpoint.number]
        if stop.cause in (Cause.ENDED, Cause.FAULT, Cause.DEADLOCK):
            self.print(text)
        self.emit("stopped", body)

    # -- looking -----------------------------------------------------------------------------------

    def threads(self, arguments: Arguments) -> dict[str, Any]:
        """A thread for each QPU."""
        session = self.session
        if self.running:
            return {"threads": [{"id": n + 1, "name": f"QPU {n}"} for n in session.qpus]}
        states = {number: session.view(number).state for number in session.qpus}
        return {"threads": [{"id": n + 1, "name": f"QPU {n} ({state})"} for n, state in states.items()]}

    def stackTrace(self, arguments: Arguments) -> dict[str, Any]:
        """One frame: where the QPU is."""
        number = self._qpu(arguments.get("threadId"))
        session = self.session
        address = session.qpus[number].next_address
        frame: dict[str, Any] = {
            "id": number + 1,
            "name": session.source.label_before(address) or f"0x{address:08x}",
            "line": 0,
            "column": 0,
            "instructionPointerReference": f"0x{address:08x}",
        }
        place = session.source.place(address)
        if place is not None:
            frame |= {"line": self._line(place.line), "column": self._line(1)}
            frame["source"] = _source(place.file)
        return {"stackFrames": [frame], "totalFrames": 1}

    def _line(self, line: int) -> int:
        return line if self._lines_from_1 else line - 1

    def scopes(self, arguments: Arguments) -> dict[str, Any]:
        """List the scopes of a frame."""
        return {"scopes": self.variables.scopes(self._qpu(arguments.get("frameId")))}

    def variables_(self, arguments: Arguments) -> dict[str, Any]:
        """List the variables below a reference, or `count` of them from `start` on."""
        reference = arguments.get("variablesReference")
        start, count = (arguments.get(name) or 0 for name in ("start", "count"))
        variables = self.variables
        try:
            qpu, nodes = variables.qpu_of(reference), variables.nodes(reference)  # type: ignore[arg-type]
        except (KeyError, TypeError):
            raise Refused("these variables are of an earlier stop") from None
        if isinstance(start, int) and isinstance(count, int) and count > 0 and start >= 0:
            nodes = nodes[start : start + count]
        return {"variables": [variables.shown(qpu, node) for node in nodes]}

    def evaluate(self, arguments: Arguments) -> dict[str, Any]:
        """An expression; in the editor's console also the commands that show something."""
        text = arguments.get("expression")
        if not isinstance(text, str) or not text.strip():
            raise Refused("there is no expression")
        session = self.session
        if arguments.get("frameId") is not None:
            session.selected = self._qpu(arguments.get("frameId"))
        word = text.split()[0].partition("/")[0]
        if arguments.get("context") == "repl" and word in _LOOKING and register_key(word) is None:
            assert self._console is not None
            self._printed.clear()
            self._console.execute(text)
            return {"result": "\n".join(self._printed), "variablesReference": 0}
        form, _, rest = take_form(text.strip())
        shown = value_text(session, rest, form)
        expression = Expression(rest)
        words = expression.words(session.view())
        view = form or expression.form(session.view())
        if len(words) == 1:
            return {"result": shown, "variablesReference": 0}
        node = self.variables.lanes_of(rest, words, view)
        found = self.variables.shown(session.selected, node)
        return {
            "result": shown,
            "variablesReference": found["variablesReference"],
            "indexedVariables": len(words),
        }

    def setVariable(self, arguments: Arguments) -> dict[str, Any]:
        """A register, a lane, a flag or a word gets a value."""
        reference, name = arguments.get("variablesReference"), arguments.get("name")
        try:
            qpu = self.variables.qpu_of(reference)  # type: ignore[arg-type]
            nodes = self.variables.nodes(reference)  # type: ignore[arg-type]
        except (KeyError, TypeError):
            raise Refused("these variables are of an earlier stop") from None
        node = next((one for one in nodes if one.name == name and one.evaluate), None)
        if node is None:
            raise Refused("this cannot be given a value")
        return self._assign(node.evaluate, arguments.get("value"), qpu)

    def setExpression(self, arguments: Arguments) -> dict[str, Any]:
        """Give a new value to what an expression names."""
        target = arguments.get("expression")
        if not isinstance(target, str):
            raise Refused("there is no expression")
        frame = arguments.get("frameId")
        qpu = self.session.selected if frame is None else self._qpu(frame)
        return self._assign(target, arguments.get("value"), qpu)

    def _assign(self, target: str, value: object, qpu: int) -> dict[str, Any]:
        self.session.assign(target, str(value), qpu)
        shown = self.session.evaluate(target, qpu)
        return {"value": str(shown)}

    def disassemble(self, arguments: Arguments) -> dict[str, Any]:
        """Instructions around an address."""
        session = self.session
        start = _address(arguments.get("memoryReference")) + _whole(arguments, "offset")
        start += INSTRUCTION_BYTES * _whole(arguments, "instructionOffset")
        count = min(_whole(arguments, "instructionCount"), MOST_INSTRUCTIONS)
        found = []
        for at in range(start, start + INSTRUCTION_BYTES * count, INSTRUCTION_BYTES):
            if not 0 <= at < 1 << 32:
                found.append(
                    {"address": f"0x{at & 0xFFFFFFFF:08x}", "instruction": "", "presentationHint": "invalid"}
                )
                continue
            word = session.memory.u64(at)
            row: dict[str, Any] = {
                "address": f"0x{at:08x}",
                "instructionBytes": f"{word:016x}",
                "instruction": instruction_text(word, at),
            }
            place = session.source.place(at)
            if place is not None:
                row |= {"line": self._line(place.line), "location": _source(place.file)}
            label = session.source.label_before(at)
            if label and "+" not in label:
                row["symbol"] = label
            found.append(row)
        return {"instructions": found}

    def readMemory(self, arguments: Arguments) -> dict[str, Any]:
        """Bytes of guest memory."""
        start = _address(arguments.get("memoryReference")) + _whole(arguments, "offset")
        count = min(max(_whole(arguments, "count"), 0), MOST_READ)
        data = self.session.memory.read(start, count)
        return {"address": f"0x{start & 0xFFFFFFFF:08x}", "data": base64.b64encode(data).decode()}

    def writeMemory(self, arguments: Arguments) -> dict[str, Any]:
        """Write bytes into guest memory."""
        start = _address(arguments.get("memoryReference")) + _whole(arguments, "offset")
        try:
            data = base64.b64decode(str(arguments.get("data", "")), validate=True)[:MOST_READ]
        except (binascii.Error, ValueError):
            raise Refused("the data is no base64") from None
        self.session.write_memory(start, data)
        return {"bytesWritten": len(data)}

    # -- breakpoints -------------------------------------------------------------------------------

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
            found |= {"line": self._line(place.line), "source": _source(place.file)}
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
        if not isinstance(path, str):
            raise Refused("a source has no path")

        def add(one: dict[str, Any]) -> Breakpoint:
            line = _whole(one, "line") + (0 if self._lines_from_1 else 1)
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
            address = _address(one.get("instructionReference")) + _whole(one, "offset")
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
            area = self.session.experiment.areas.get(expression)
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

    # -- output ------------------------------------------------------------------------------------

    def print(self, text: str, category: str = "console") -> None:
        """A line in the editor's console."""
        self.emit("output", {"category": category, "output": f"{text}\n"})

    def _message(self, item: Diagnostic) -> None:
        body: dict[str, Any] = {
            "category": "stderr" if item.severity >= Severity.WARNING else "console",
            "output": f"{item}\n",
        }
        place = self.session.source.place(item.address) if item.address is not None else None
        if place is not None:
            body |= {"source": _source(place.file), "line": self._line(place.line)}
        self.emit("output", body)


def _source(file: str) -> dict[str, Any]:
    return {"name": Path(file).name, "path": str(Path(file).absolute())}


def _address(text: object) -> int:
    try:
        found = int(str(text)[:20], 0)
    except ValueError:
        raise Refused(f"{str(text)[:20]!r} is no address") from None
    if not 0 <= found < 1 << 32:
        raise Refused(f"{str(text)[:20]!r} is no address")
    return found


def _whole(arguments: Mapping[str, Any], name: str) -> int:
    value = arguments.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 32:
        raise Refused(f'"{name}" is no whole number')
    return value


def _text(arguments: Arguments, name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(f'"{name}" is a text')
    return value


def _texts(arguments: Arguments, name: str) -> list[str]:
    value = arguments.get(name, [])
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Refused(f'"{name}" is a list of texts')
    return value
