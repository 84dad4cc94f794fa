"""The requests of an editor, carried out on a session.

A request's method is named as the protocol names the command. What an editor asks that makes no sense
is a Refused with a sentence, which it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.debug.console import Console
from vc4lab.debug.dap.arguments import Arguments, Refused, pixel_in, text_in, texts_in, whole_in
from vc4lab.debug.dap.breakpoints import BreakpointRequests
from vc4lab.debug.dap.looking import LookingRequests
from vc4lab.debug.dap.variables import Variables
from vc4lab.debug.launch import Launch, Launchable, LaunchError
from vc4lab.debug.stops import Cause, Stop
from vc4lab.debug.texts import stop_text
from vc4lab.diagnostics import Severity
from vc4lab.ranges import BUDGET, QPU_COUNT
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

if TYPE_CHECKING:
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
Work = Callable[[], Stop]


class Adapter(LookingRequests, BreakpointRequests):
    """The state of one editor's session.

    launch: what the command line has named, if it has. emit: sends an event. start: has work done in
    another thread; `stopped` is called when it is through.
    """

    def __init__(
        self, launch: Launchable, emit: Callable[[str, dict[str, Any]], None], start: Callable[[Work], None]
    ) -> None:
        super().__init__()
        self._given = launch
        self.emit = emit
        self._start = start
        self._stop_on_entry = False
        self.running = False
        self.ended = False

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

    def _launch_of(self, arguments: Arguments) -> Launchable:
        given = self._given
        if arguments.get("capture") is not None:
            return self._shader_of(arguments)
        program = arguments.get("program")
        if program is None:
            if not given.is_named:
                raise Refused('the configuration has no "program" and no "capture"')
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
            texts_in(arguments, "uniforms"),
            texts_in(arguments, "memory"),
            text_in(arguments, "entry"),
            text_in(arguments, "symbol"),
            budget,
            arguments.get("check", True) is not False,
            text_in(arguments, "dialect"),
            [Path(folder) for folder in texts_in(arguments, "include")],
            given.unknowns if isinstance(given, Launch) else DEFAULT_UNKNOWNS,
            Path(program).parent,
        )

    def _shader_of(self, arguments: Arguments) -> Launchable:
        """The run of a shader of a captured frame."""
        from vc4lab.debug.shaders.find import Question
        from vc4lab.debug.shaders.launch import ShaderLaunch

        capture = text_in(arguments, "capture")
        if not capture or "\0" in capture:
            raise Refused('"capture" is the path of a file or a folder')
        if self._given.frames is None:
            raise Refused("this server opens no captures")
        numbers: dict[str, int | None] = {}
        for name in ("frame", "vertex", "draw"):
            numbers[name] = None if arguments.get(name) is None else whole_in(arguments, name)
            if (numbers[name] or 0) < 0:
                raise Refused(f'"{name}" is a number from 0 on')
        question = Question(
            numbers["frame"], text_in(arguments, "at") or "", pixel_in(arguments, "pixel"), numbers["vertex"],
            numbers["draw"] or 0, arguments.get("coordinate", False) is True,
        )  # fmt: skip
        return ShaderLaunch(Path(capture), question, self._given.frames)

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
            body |= {"source": self._source_of(place.file), "line": self._line(place.line)}
        self.emit("output", body)
