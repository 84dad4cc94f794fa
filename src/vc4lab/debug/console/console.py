"""Reads commands and carries them out, with what is wrong with one in a sentence."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vc4lab.debug.console import looking, running, stopping
from vc4lab.debug.console.command import Command, Context
from vc4lab.debug.expressions import ExpressionError
from vc4lab.files import read_file, why

if TYPE_CHECKING:
    from vc4lab.debug.session import Session
    from vc4lab.diagnostics import Diagnostic

PROMPT = "(vc4lab) "
LONGEST_LINE = 2000
LARGEST_SCRIPT = 1 << 20
DEEPEST = 8
"""Scripts that name scripts."""


class Console:
    """The commands of a session. write: takes each line of output.

    Attributes
    ----------
    done
        Whether `quit` was said; `code`: with which exit code.
    """

    def __init__(self, session: Session, write: Callable[[str], object]) -> None:
        self.session = session
        self.write = write
        self.done = False
        self.code = 0
        self.context = Context(session, write)
        self._depth = 0
        self._last = ""
        session.on_message = self._message
        self.commands: dict[str, Command] = {}
        for command in (*running.COMMANDS, *looking.COMMANDS, *stopping.COMMANDS, *self._own()):
            for name in command.names:
                self.commands[name] = command

    def _own(self) -> Iterable[Command]:
        def own(run: Callable[[str], None]) -> Callable[[Context, str], None]:
            return lambda _context, text: run(text)

        listed = "say what commands there are, or what one does"
        return (
            Command(("source",), "FILE", "carry out the commands of a file", own(self._source)),
            Command(("help", "h"), "[COMMAND]", listed, own(self._help)),
            Command(("quit", "q", "exit"), "[CODE]", "end the session", own(self._quit)),
        )

    def _message(self, item: Diagnostic) -> None:
        self.write(str(item))

    def greet(self) -> None:
        """The first lines: what was reported before the start, and where the session stands."""
        for _, item in self.session.messages:
            self._message(item)
        self.context.show_stop()

    def execute(self, line: str) -> None:
        """A command; an empty line repeats the last one, if that steps or shows what follows."""
        text = line.strip()
        if not text:
            text = self._last
        if not text or text.startswith("#"):
            return
        self._last = ""
        if len(text) > LONGEST_LINE:
            self.write(f"a line has at most {LONGEST_LINE} characters")
            return
        word, _, rest = text.partition(" ")
        name, slash, form = word.partition("/")
        command = self._find(name)
        if command is None:
            return
        try:
            command.run(self.context, (f"/{form} " if slash else "") + rest.strip())
        except (ExpressionError, ValueError) as error:
            self.write(str(error))
        if command.repeats:
            self._last = command.again or text

    def _find(self, name: str) -> Command | None:
        """By name, or by a beginning that only one has."""
        if name in self.commands:
            return self.commands[name]
        found = {id(c): c for known, c in self.commands.items() if known.startswith(name)} if name else {}
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            names = ", ".join(sorted(command.names[0] for command in found.values()))
            self.write(f"{name!r} may be {names}")
            return None
        close = difflib.get_close_matches(name, self.commands, 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        self.write(f"there is no command {name[:40]!r}{meant} (help lists them)")
        return None

    # -- where commands are from

    def run_file(self, path: Path) -> None:
        """The commands of a file. Raises OSError."""
        text = read_file(path, LARGEST_SCRIPT).decode("utf-8", "replace")
        for line in text.splitlines():
            if self.done:
                return
            if line.strip():
                self.execute(line)

    def run_stream(self, stream: IO[str]) -> None:
        """The commands of a pipe, up to its end."""
        while not self.done and (line := stream.readline(LONGEST_LINE + 1)):
            if line.strip():
                self.execute(line)

    def run_terminal(self) -> None:
        """Asks for commands, with line editing, up to `quit` or the end of input."""
        try:
            import readline

            readline.parse_and_bind("tab: complete")
            readline.set_completer(self._complete)
        except ImportError:
            pass
        while not self.done:
            try:
                self.execute(input(PROMPT))
            except EOFError:
                self.write("")
                return
            except KeyboardInterrupt:
                self.write("")

    def _complete(self, text: str, state: int) -> str | None:
        found = sorted(name for name in self.commands if name.startswith(text))
        found += sorted(name for name in self.session.source.labels if name.startswith(text))
        return found[state] if state < len(found) else None

    # -- its own commands

    def _source(self, text: str) -> None:
        if not text:
            raise ExpressionError("source FILE")
        if self._depth >= DEEPEST:
            raise ExpressionError("scripts name scripts too deep")
        self._depth += 1
        try:
            self.run_file(Path(text))
        except OSError as error:
            raise ExpressionError(f"{text}: {why(error)}") from None
        finally:
            self._depth -= 1

    def _help(self, text: str) -> None:
        if text:
            command = self._find(text.split()[0])
            if command is not None:
                names = ", ".join(command.names)
                self.write(f"{names} {command.usage}".rstrip())
                self.write(f"    {command.help}")
            return
        for command in dict.fromkeys(self.commands.values()):
            usage = f"{', '.join(command.names)} {command.usage}".rstrip()
            self.write(f"{usage:<44} {command.help.splitlines()[0]}")

    def _quit(self, text: str) -> None:
        code = self.session.evaluate(text) if text else 0
        if not isinstance(code, int) or not 0 <= code <= 255:
            raise ExpressionError("quit [CODE]: an exit code is 0 to 255")
        self.done, self.code = True, code
