"""Declares what a session asks of what it steps: QPUs that take turns, memory, the source.

A session asks nothing else of it. `programs.py` sets up the programs of an experiment, `shaders/` the
shaders of a captured frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.debug.history import Journal
from vc4lab.debug.stepped import Observer
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES, WINDOW_ROWS

if TYPE_CHECKING:
    from vc4lab.debug.source import Source
    from vc4lab.debug.stepped import Stepped
    from vc4lab.diagnostics import Diagnostic, Reporter
    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.user_programs.experiment import Area
    from vc4lab.v3d.user_programs.state import SharedState


class Row(NamedTuple):
    """A line of a part of the state: its name, 16 words or one (none: only the note), a note.

    form: the view that suits the words.
    """

    name: str
    words: Sequence[int] = ()
    note: str = ""
    form: str = "hex"


class Section(NamedTuple):
    """A part of the state that only this kind of stage has.

    name: a word by which commands know it; title: for people; rows: reads it, as it is now.
    """

    name: str
    title: str
    rows: Callable[[], list[Row]]


class Stage:
    """Sets up what a session steps.

    Attributes
    ----------
    memory, source
        Guest memory, and the program as its author wrote it.
    reporter
        Takes diagnostics; `on_message` is called with each, those before are in `early`.
    qpus
        By number.
    journal, observer
        What was overwritten in guest memory; what the last turn has accessed there.
    areas
        Memories with names.
    shared
        Mutex, semaphores and VPM of user programs; None: there is no such thing.
    sections
        Parts of the state that faces show besides registers, flags and queues.
    """

    areas: Mapping[str, Area] = {}
    shared: SharedState | None = None
    sections: tuple[Section, ...] = ()

    def __init__(self, memory: GuestMemory, source: Source, reporter: Reporter) -> None:
        self.memory, self.source, self.reporter = memory, source, reporter
        self.journal = Journal(memory.base)
        self.observer = Observer(memory.base, self.journal.before_write)
        self.qpus: dict[int, Stepped] = {}
        self.early: list[Diagnostic] = []
        self.on_message: Callable[[Diagnostic], object] = self.early.append
        reporter.listeners.append(self._message)

    def _message(self, item: Diagnostic) -> None:
        self.on_message(item)

    def code_address(self, offset: int) -> int:
        """Return the address of the word at a byte offset of the program."""
        return self.source.base + offset

    def report(self, qpu: Stepped) -> None:
        """Report what a QPU's turn has brought up."""

    def report_deadlock(self, text: str) -> None:
        """Report that all QPUs wait, once."""

    def saved(self) -> Any:
        """The state that QPUs share."""

    def restore(self, saved: Any) -> None:
        """Back to such a state."""

    def vpm_rows(self) -> Any:
        """The VPM as 64 rows of 16 words."""
        return np.zeros((WINDOW_ROWS, ROW_BYTES // 4), np.uint32)

    def lanes(self, name: str) -> Any:
        """The 16 words of a name that only this stage has; None: it has no such name."""
        return None

    def meaning(self, address: int) -> str:
        """Say what the word of the uniform stream at an address is for; "": it is not known."""
        return ""
