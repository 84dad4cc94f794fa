"""The session of an editor, as all groups of requests see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.debug.dap.arguments import Refused

if TYPE_CHECKING:
    from vc4lab.debug.console import Console
    from vc4lab.debug.dap.variables import Variables
    from vc4lab.debug.session import Session


TEXT = 1
"""The reference of a source that is in no file."""


class Requests:
    """Holds what was launched, if anything was."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._variables: Variables | None = None
        self._console: Console | None = None
        self._printed: list[str] = []
        """Lines of the console that are not sent yet."""
        self._lines_from_1 = True

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

    def _qpu(self, thread: object) -> int:
        """The QPU of a thread, or of its frame."""
        if not isinstance(thread, int) or thread - 1 not in self.session.qpus:
            raise Refused("there is no such QPU")
        return thread - 1

    def _source_of(self, file: str) -> dict[str, Any]:
        """A source as the protocol names it; one that is in no file by a reference."""
        if self.session.source.is_text(file):
            return {"name": Path(file).name, "sourceReference": TEXT, "presentationHint": "normal"}
        return {"name": Path(file).name, "path": str(Path(file).absolute())}

    def _line(self, line: int) -> int:
        return line if self._lines_from_1 else line - 1
