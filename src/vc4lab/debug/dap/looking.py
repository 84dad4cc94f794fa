"""Requests that show and change the state: threads, frames, variables, expressions, memory, code."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from vc4lab.debug.console.command import take_form, value_text
from vc4lab.debug.dap.arguments import Arguments, Refused, address_in, whole_in
from vc4lab.debug.dap.requests import Requests
from vc4lab.debug.expressions import Expression, register_key
from vc4lab.debug.texts import instruction_text
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES

MOST_READ = 1 << 20
"""Bytes of memory in one answer."""
MOST_INSTRUCTIONS = 4096
_LOOKING = ("print", "p", "info", "i", "x", "list", "l", "disassemble", "where", "bt", "help", "h", "output")
"""Commands of the console that an editor's console takes, too."""


class LookingRequests(Requests):
    """Carries out what an editor asks of a session that stands."""

    running = False
    """Whether instructions are executed now."""

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
            frame["source"] = self._source_of(place.file)
        return {"stackFrames": [frame], "totalFrames": 1}

    def source(self, arguments: Arguments) -> dict[str, Any]:
        """The text of a source that is in no file."""
        text = self.session.source.text
        if text is None:
            raise Refused("the source is in a file")
        return {"content": text, "mimeType": "text/plain"}

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
        start = address_in(arguments.get("memoryReference")) + whole_in(arguments, "offset")
        start += INSTRUCTION_BYTES * whole_in(arguments, "instructionOffset")
        count = min(whole_in(arguments, "instructionCount"), MOST_INSTRUCTIONS)
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
                row |= {"line": self._line(place.line), "location": self._source_of(place.file)}
            label = session.source.label_before(at)
            if label and "+" not in label:
                row["symbol"] = label
            found.append(row)
        return {"instructions": found}

    def readMemory(self, arguments: Arguments) -> dict[str, Any]:
        """Bytes of guest memory."""
        start = address_in(arguments.get("memoryReference")) + whole_in(arguments, "offset")
        count = min(max(whole_in(arguments, "count"), 0), MOST_READ)
        data = self.session.memory.read(start, count)
        return {"address": f"0x{start & 0xFFFFFFFF:08x}", "data": base64.b64encode(data).decode()}

    def writeMemory(self, arguments: Arguments) -> dict[str, Any]:
        """Write bytes into guest memory."""
        start = address_in(arguments.get("memoryReference")) + whole_in(arguments, "offset")
        try:
            data = base64.b64decode(str(arguments.get("data", "")), validate=True)[:MOST_READ]
        except (binascii.Error, ValueError):
            raise Refused("the data is no base64") from None
        self.session.write_memory(start, data)
        return {"bytesWritten": len(data)}
