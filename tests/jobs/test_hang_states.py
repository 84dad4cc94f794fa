"""The kernel's hang states: what they say of a hang, run again; files that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from vc4lab.capture.errors import CaptureError
from vc4lab.diagnostics import Reporter
from vc4lab.jobs.dumps.clif_reader import read_clif
from vc4lab.jobs.dumps.clif_writer import clif_files
from vc4lab.jobs.dumps.hang_state import HangState, hang_state_bytes, is_hang_state, read_hang_state
from vc4lab.jobs.dumps.memory_dump import DumpBuffer, MemoryDump
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.model import Noted, Patched, Written
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.unpack import unpack_jobs
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import parse_list
from vc4lab.records.declarations import BranchToSublist
from vc4lab.records.shader import parse_gl_state
from vc4lab.records.states import GlShaderState

TRIANGLE = Path(__file__).parents[1] / "data" / "captures" / "tri.vc4cap"
ENDLESS = ":a\nbrr -, a\nnop\nnop\nnop\nnop\nthrend\nnop\nnop"
HEAD = 4 + 160


@pytest.fixture(scope="module")
def job() -> MemoryDump:
    """The triangle's job as buffers and lists."""
    ((name, data),) = clif_files(open_jobs(TRIANGLE))
    return read_clif(data, name)


def registers(job: MemoryDump, **more: int) -> dict[str, int]:
    """As they are when the binner is done, and the renderer at its first tile list."""
    binning, rendering = job.lists
    records = parse_list(job.read, rendering.start, rendering.end)
    at = next(one.address for one in records if isinstance(one.payload, BranchToSublist))
    found = {"CT0CA": binning.end, "CT0EA": binning.end, "CT1CA": at, "CT1EA": rendering.end, "CT1CS": 0x20}
    return found | more


def hang(job: MemoryDump, **more: int) -> bytes:
    """The file of a hang."""
    state = HangState(job.lists[0].start, job.lists[1].start, registers(job, **more))
    return hang_state_bytes(state, job.buffers)


def with_endless_fragments(job: MemoryDump) -> MemoryDump:
    """The same job with a fragment shader that has no end."""
    records = parse_list(job.read, job.lists[0].start, job.lists[0].end)
    (state,) = (one.payload for one in records if isinstance(one.payload, GlShaderState))
    code, program = parse_gl_state(job.read, state).record.fs_code, assemble(ENDLESS).bytes
    buffers = []
    for one in job.buffers:
        data = bytearray(one.data)
        if one.address <= code < one.address + len(data):
            data[code - one.address : code - one.address + len(program)] = program
        buffers.append(DumpBuffer(one.name, one.address, data))
    return MemoryDump("hang", "", buffers, list(job.lists))


def notes_of(path: Path) -> list[str]:
    """What is said of a dump."""
    return [one.text for one in open_jobs(path).frames[0].events if isinstance(one, Noted)]


def test_a_job_that_is_fine_is_drawn(job: MemoryDump, tmp_path: Path) -> None:
    path = tmp_path / "fine.dump"
    path.write_bytes(hang(job))
    ((_, result),) = JobsPlayer(open_jobs(path)).play()
    ((_, expected),) = JobsPlayer(open_jobs(TRIANGLE)).play()
    assert (np.asarray(result.image) == np.asarray(expected.image)).all()
    unpack_jobs(open_jobs(path), tmp_path / "folder")
    assert list((tmp_path / "folder").glob("jobs/1/job-1-binning.txt"))
    again = [one.text for one in open_jobs(tmp_path / "folder").frames[0].events if isinstance(one, Noted)]
    assert again == notes_of(path)


def test_what_it_says_and_why_it_hangs(job: MemoryDump, tmp_path: Path) -> None:
    path = tmp_path / "x.dump"
    path.write_bytes(hang(with_endless_fragments(job), ERRSTAT=0x1040))
    notes = notes_of(path)
    assert "CT1CS 0x00000020: CTRUN (running)" in notes
    assert "ERRSTAT 0x00001040: VCDI (VCD idle), VPMERNA (read from non-allocated)" in notes
    assert any(one.startswith("thread 0 (binning) stood at the end of its list") for one in notes)
    assert any("thread 1 (rendering) stood at" in one and "of tile 0,0" in one and "sub-list" in one
               for one in notes)  # fmt: skip
    reporter = Reporter()
    player = JobsPlayer(open_jobs(path), reporter=reporter)
    player.run(player.capture.frames[0])
    assert player.hangs == ["a fragment shader does not end; draws with it are left out"]
    assert reporter.has("QPU-041")


def test_the_file_that_the_pages_speak_of() -> None:
    """A triangle with an endless fragment shader."""
    path = TRIANGLE.parent / "endless.dump"
    player = JobsPlayer(open_jobs(path), reporter=Reporter())
    player.run(player.capture.frames[0])
    assert len(player.hangs) == 1
    assert any("of tile 0,0" in one for one in notes_of(path))


def test_lists_of_two_jobs(job: MemoryDump, tmp_path: Path) -> None:
    """Linux bins the next job meanwhile: its tile memory is not what the rendering list branches to."""
    place = bytearray(hang(job))
    start, end = job.lists[0].start, job.lists[0].end
    mode = next(parse_list(job.read, start, end))
    assert mode.payload is not None
    old = struct.pack("<BI", mode.id, mode.payload.address)
    at = bytes(place).index(old)
    place[at : at + 5] = struct.pack("<BI", mode.id, 0x0300_0000)
    path = tmp_path / "two.dump"
    path.write_bytes(place)
    events = open_jobs(path).frames[0].events
    written = [one.register for one in events if isinstance(one, Written)]
    assert written == ["CT1CA", "CT1EA", "CT0CA", "CT0EA"]
    assert any("those of two jobs" in one for one in notes_of(path))
    assert [one.data for one in events if isinstance(one, Patched)] == [b"\1"]


@pytest.mark.parametrize("length", [0, 3, HEAD - 1])
def test_less_than_its_head_is_no_hang_state(job: MemoryDump, length: int) -> None:
    assert not is_hang_state(hang(job)[:length])


@pytest.mark.parametrize(
    ("place", "new", "said"),
    [
        (slice(HEAD, None), b"", "it names 5 buffers"),
        (slice(-1, None), b"", "cut off in buffer 5 of 5"),
        (slice(12, 16), struct.pack("<I", 60000), "it names 60000 buffers"),
        (slice(HEAD + 8, HEAD + 12), struct.pack("<I", 0xFFFFFFFF), "cut off in buffer 1"),
        (slice(16, 20), struct.pack("<I", 0x12345678), "binning list at 0x12345678 is in none"),
        (slice(HEAD + 4, HEAD + 8), struct.pack("<I", 0x3FFFFFFF), "leaves memory"),
    ],
)
def test_what_is_wrong_is_said(job: MemoryDump, tmp_path: Path, place: slice, new: bytes, said: str) -> None:
    data = bytearray(hang(job))
    data[place] = new
    path = tmp_path / "bad.dump"
    path.write_bytes(data)
    with pytest.raises(CaptureError) as caught:
        open_jobs(path)
    assert caught.value.code == "CAP-012"
    assert caught.value.file == "bad.dump"
    assert said in caught.value.text


def test_another_version(job: MemoryDump) -> None:
    with pytest.raises(CaptureError, match="version 0"):
        read_hang_state(b"\1" + hang(job)[1:], "x")
