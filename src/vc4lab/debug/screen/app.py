"""The full screen: source and words, a view of the state, the QPUs, and the console's commands."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer, Input, RichLog, Static

from vc4lab.debug.console import Console
from vc4lab.debug.formats import FORMATS
from vc4lab.debug.screen import panes
from vc4lab.debug.texts import stop_text

if TYPE_CHECKING:
    from textual import events

    from vc4lab.debug.session import Session

FORMS = tuple(FORMATS)
MOST_LOGGED = 2000
STEPS = frozenset(("step", "next", "reverse-stepi"))
MOST_KEYS = 16
"""Steps that keys have asked for before the last one was done."""


class Screen(App[int]):
    """A session; the app's result is the exit code that `quit` names."""

    CSS = """
    #title { height: 1; background: $primary; color: $text; padding: 0 1; }
    #upper { height: 1fr; }
    #code { width: 5fr; height: 100%; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #state { text-wrap: nowrap; text-overflow: ellipsis; }
    #side { width: 4fr; border-left: solid $primary; padding: 0 1; }
    #view { height: 1; color: $text-muted; }
    #lower { height: 11; border-top: solid $primary; }
    #qpus { width: 5fr; height: 100%; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #log { width: 4fr; border-left: solid $primary; padding: 0 1; scrollbar-size-vertical: 1; }
    #command { height: 1; border: none; padding: 0 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,f11", "do('step')", "step"),
        Binding("n,f10", "do('next')", "next"),
        Binding("c,f5", "do('continue')", "continue"),
        Binding("b,left", "do('reverse-stepi')", "back"),
        Binding("r", "do('reverse-continue')", "back to stop"),
        Binding("p,f6", "pause", "pause"),
        Binding("t,f9", "breakpoint", "breakpoint"),
        Binding("f", "form", "format"),
        Binding("tab", "view(1)", "view", priority=True),
        Binding("shift+tab", "view(-1)", "view back", priority=True, show=False),
        Binding("right_square_bracket", "qpu(1)", "QPU ]"),
        Binding("left_square_bracket", "qpu(-1)", "QPU [", show=False),
        Binding("up", "scroll_code(-1)", "up", show=False),
        Binding("down", "scroll_code(1)", "down", show=False),
        Binding("pageup", "scroll_code(-10)", "up", show=False),
        Binding("pagedown", "scroll_code(10)", "down", show=False),
        Binding("colon", "command", "command :"),
        Binding("escape", "leave", "leave", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.debugged = session
        self.views = panes.views_of(session)
        self.console_lines: list[str] = []
        self.commands = Console(session, self._write)
        self.form, self.view, self.shift = 0, 0, 0
        self.before = panes.snapshot(session)
        self.busy = False
        self.running, self.asked = "", list[str]()

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static(id="title", markup=False)
        with Horizontal(id="upper"):
            yield Static(id="code")
            with VerticalScroll(id="side"):
                yield Static(id="view", markup=False)
                yield Static(id="state")
        with Horizontal(id="lower"):
            yield Static(id="qpus")
            yield RichLog(id="log", max_lines=MOST_LOGGED, wrap=True)
        yield Input(placeholder=": a command, help lists them", id="command", compact=True)
        yield Footer()

    def on_mount(self) -> None:
        """Nothing has the focus: keys are commands."""
        self.query_one("#side").can_focus = False
        self.query_one("#log").can_focus = False
        self.commands.greet()
        self.show_all()

    def on_resize(self, _event: events.Resize) -> None:
        """The source has another height."""
        self.call_after_refresh(self.show_all)

    # -- what is shown

    def show_all(self) -> None:
        """All panes anew."""
        session = self.debugged
        name = Path(session.source.path).name
        text = "runs …" if self.busy else stop_text(session, session.stop) or "stopped"
        title = (
            f"{name}   QPU {session.selected}   turn {session.turn} of {len(session.history.turns)}   {text}"
        )
        self.query_one("#title", Static).update(title)
        log = self.query_one("#log", RichLog)
        lines, self.console_lines = self.console_lines, []
        for line in lines:
            log.write(line)
        if self.busy:
            return
        code = self.query_one("#code", Static)
        code.update(panes.code_text(session, max(code.size.height, 1), self.shift))
        view, make = self.views[self.view]
        self.query_one("#view", Static).update(f"{view}  ({FORMS[self.form]})")
        columns = max(self.query_one("#side").size.width - 2, 20)
        look = panes.Look(FORMS[self.form], self.before, columns)
        self.query_one("#state", Static).update(make(session, look))
        self.query_one("#qpus", Static).update(panes.qpus_text(session))

    def _write(self, text: str) -> None:
        self.console_lines.append(text)

    # -- commands

    def _run(self, line: str) -> None:
        """A command of the console, in a thread, so that `pause` is heard."""
        if self.busy:
            if {line, self.running} <= STEPS and len(self.asked) < MOST_KEYS:
                self.asked.append(line)
                return
            self._write("the programs run: pause first")
            self.show_all()
            return
        self.busy, self.shift, self.running = True, 0, line
        self.before = panes.snapshot(self.debugged)
        self.show_all()

        def work() -> None:
            self.commands.execute(line)
            with suppress(RuntimeError):  # the screen is gone
                self.call_from_thread(self._ran)

        self.run_worker(work, thread=True, exit_on_error=True)

    def _ran(self) -> None:
        self.busy = False
        if self.commands.done:
            self.exit(self.commands.code)
            return
        self.show_all()
        if self.asked:
            self._run(self.asked.pop(0))

    def action_do(self, command: str) -> None:
        """A key that is a command."""
        self._run(command)

    def action_pause(self) -> None:
        """Stop the programs that run."""
        self.asked.clear()
        if self.busy:
            self.debugged.pause()

    def action_breakpoint(self) -> None:
        """A breakpoint at the next instruction, or none any longer."""
        points, here = self.debugged.breakpoints, self.debugged.qpu.next_address
        numbers = [n for n, item in points.items.items() if here in getattr(item, "addresses", ())]
        self._run(f"delete {' '.join(map(str, numbers))}" if numbers else f"break *{here}")

    def action_form(self) -> None:
        """The next view of words."""
        self.form = (self.form + 1) % len(FORMS)
        self.show_all()

    def action_view(self, step: int) -> None:
        """The next part of the state."""
        self.view = (self.view + step) % len(self.views)
        self.show_all()

    def action_qpu(self, step: int) -> None:
        """The next QPU."""
        if self.busy:
            return
        session = self.debugged
        numbers = list(session.qpus)
        session.selected = numbers[(numbers.index(session.selected) + step) % len(numbers)]
        self.shift, self.before = 0, panes.snapshot(session)
        self.show_all()

    def action_scroll_code(self, lines: int) -> None:
        """Other lines of the source."""
        self.shift += lines
        self.show_all()

    def action_command(self) -> None:
        """Keys go to the command line."""
        self.query_one("#command", Input).focus()

    def action_leave(self) -> None:
        """Keys are commands again."""
        self.set_focus(None)

    async def action_quit(self) -> None:
        """The end; what runs is stopped first."""
        self.debugged.pause()
        self.exit(0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A line of the command line."""
        event.input.value = ""
        if event.value.strip():
            self._write(f"> {event.value.strip()}")
            self._run(event.value)


def run(session: Session) -> int:
    """The session on the whole screen, up to `quit`; the exit code."""
    return Screen(session).run() or 0
