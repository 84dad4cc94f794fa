"""Programs of a real driver, which run on boards, break no rule of the lint."""

from collections.abc import Iterator
from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.recorded.listing import JobListing
from vc4lab.qpu.dialects.blocks import program_text
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.qpu.lint.lint import lint
from vc4lab.qpu.program.reader import program_at
from vc4lab.records.control import parse_list

RUNS = Path(__file__).parents[2] / "data" / "vc4-jobs"


class _Programs(JobListing):
    """Collects the programs instead of listing them."""

    found: set[tuple[int, ...]]

    def program_lines(self, name: str, code: int, uniforms: int) -> Iterator[str]:
        self.found.add(program_at(self.memory, code).words)
        return iter(())


def recorded() -> set[tuple[int, ...]]:
    """The programs of all recorded jobs."""
    found: set[tuple[int, ...]] = set()
    for path in sorted(RUNS.iterdir()):
        if not path.is_dir() or path.name == "blobs":
            continue
        run = RecordedRun(path, Reporter())
        for job in run.jobs:
            built = job.build()
            listing = _Programs(run.memory)
            listing.found = found
            for record in parse_list(run.memory.read, built.bin_start, built.bin_end, follow=True):
                for _ in listing.shader_lines(record):
                    pass
    assert len(found) > 40
    return found


def test_recorded_shaders_come_back_from_text() -> None:
    """In both dialects, with labels, blocks and comments: the same words."""
    for words in recorded():
        for dialect in ("qpuasm", "vc4asm"):
            text = program_text(words, dialect)
            assert assemble_source(text, dialect=dialect).words == words


def test_recorded_shaders_are_clean() -> None:
    found = recorded()
    assert [finding for words in found for finding in lint(words)] == []
