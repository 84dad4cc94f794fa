"""The QPU programs of recorded work, each once, with what their uniforms and textures were.

finder = ProgramFinder(memory, "job0001")
finder.look(job)
finder.found[0].words, finder.found[0].notes
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.jobs.listing import MAX_PROGRAM, JobListing
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.uniforms import uniform_uses
from vc4lab.qpu.program.reader import program_at

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.jobs.model import JobsCapture
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.program.program import Program
    from vc4lab.v3d.core import V3D
    from vc4lab.v3d.events import JobStarted, ProgramStarted
    from vc4lab.v3d.submission import ListAddresses


@dataclass(frozen=True)
class FoundProgram:
    """A program of recorded work.

    Attributes
    ----------
    kind
        fragment, vertex, coordinate or user.
    place
        Where it was seen first: a job, a frame.
    address
        Where it lay; 0 if that is not known.
    notes
        By the number of a uniform, in the order of the text: what it was.
    """

    kind: str
    words: tuple[int, ...]
    place: str
    address: int = 0
    notes: dict[int, str] = field(default_factory=dict, compare=False)


class ProgramFinder(JobListing):
    """Collects the programs that lists name; each once for a kind, with its first uniforms."""

    def __init__(self, memory: GuestMemory, place: str = "") -> None:
        super().__init__(memory)
        self.place = place
        self.found: list[FoundProgram] = []
        self._known: set[tuple[str, tuple[int, ...]]] = set()

    def look(self, job: ListAddresses) -> None:
        """Take in a job's programs: those of its binning list; of its rendering list if it has no other."""
        if job.bin_start != job.bin_end:
            self.look_at(job.bin_start, job.bin_end)
        else:
            self.look_at(job.render_start, job.render_end)

    def look_at(self, start: int, end: int) -> None:
        """Take in the programs that a list names."""
        for _ in self.list_lines(start, end):
            pass

    def program_lines(self, name: str, code: int, uniforms: int) -> Iterator[str]:
        program = program_at(self.memory, code, limit=MAX_PROGRAM)
        key = name, program.words
        if program.words and key not in self._known:
            self._known.add(key)
            notes = self._uniforms(program, uniforms)
            self.found.append(FoundProgram(name, program.words, self.place, code, notes))
        return iter(())

    def _uniforms(self, program: Program, uniforms: int) -> dict[int, str]:
        uses = uniform_uses(self.memory, program, uniforms)
        notes = {}
        for one in uses:
            (value,) = struct.unpack("<f", one.word.to_bytes(4, "little"))
            notes[one.number] = f"0x{one.word:08x}" + (f", {value:.7g}" if one.is_plain else "")
        for one in uses:
            if one.texture is not None:
                first = one.request[0]
                notes[first] = f"0x{uses[first].word:08x}, {one.texture.text()}"
        return notes


def programs_of_jobs(capture: JobsCapture, reporter: Reporter) -> list[FoundProgram]:
    """The programs of captured jobs, which are run for it. Raises CaptureError."""
    found: list[FoundProgram] = []
    known: set[tuple[str, tuple[int, ...]]] = set()
    at = ""

    def take(finder: ProgramFinder) -> None:
        for one in finder.found:
            if (one.kind, one.words) not in known:
                known.add((one.kind, one.words))
                found.append(one)

    def listen(v3d: V3D) -> None:
        def started(event: JobStarted) -> None:
            if not event.thread:  # what is rendered was binned before
                finder = ProgramFinder(v3d.memory, at)
                finder.look_at(event.address, event.end)
                take(finder)

        def program(event: ProgramStarted) -> None:
            finder = ProgramFinder(v3d.memory, at)
            finder.program_lines("user", event.address, event.uniforms)
            take(finder)

        v3d.listeners.job_started.subscribe(started)
        v3d.listeners.program_started.subscribe(program)

    player = JobsPlayer(capture, reporter=reporter, on_v3d=listen)
    for frame in capture.frames:
        at = f"frame {frame.number}"
        player.run(frame)
    return found
