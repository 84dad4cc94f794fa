"""`benchmarks/_lock_places.py`: fragment programs that take the lock of the tile buffer earlier."""

from pathlib import Path

import pytest
from benchmarks import _lock_places
from benchmarks._lock_places import early_words, frames_of, lines, thread_lines, with_one_thread

from vc4lab.qpu.text.assembler import assemble

RUN = Path(__file__).parent / "data" / "vc4-jobs" / "glmark2_texture_texture-filter_linear"
PROGRAM = assemble(
    "ldi r0, 1\nnop\nadd r0, r0, r0\nmov tlbz, r0\nmov tlbc, r0 ; nop ; thrend\nnop\nnop ; nop ; sbdone\n"
).words


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_first_access_goes_up(place: int) -> None:
    moved = early_words(tuple(PROGRAM), place)
    assert moved[place] == PROGRAM[3]
    assert [word for word in moved if word != PROGRAM[3]] == [word for word in PROGRAM if word != PROGRAM[3]]


@pytest.mark.parametrize("place", [3, 5])
def test_what_is_there_already_stays(place: int) -> None:
    assert early_words(tuple(PROGRAM), place) == tuple(PROGRAM)
    assert early_words((0x100009E7009E7000,), 0) == (0x100009E7009E7000,)


def test_a_table_of_a_recorded_scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "linear").symlink_to(RUN)
    (tmp_path / "linear.scene").write_text("texture:texture-filter=linear\n")
    monkeypatch.setattr(_lock_places, "PLACES", {"texture:texture-filter=linear": (2,)})
    rows = list(lines(tmp_path))[2:]
    assert [row.split(" | ")[1] for row in rows] == ["4x4 pixels", "2x2 pixels", "2x2 pixels, one a slice"]
    squares, quads, alone = (float(row.split("2: +")[1].split(" %")[0]) for row in rows)
    assert squares > quads >= 0, "squares wait for more vectors than quads do"
    assert alone > quads, "a vector of another place waits, too, if it is in the same slice"
    monkeypatch.setattr(_lock_places, "THREADED", ("texture:texture-filter=linear",))
    gains = [float(row.split(" | ")[4].split(" %")[0]) for row in list(thread_lines(tmp_path))[2:]]
    assert len(gains) == 3
    assert all(abs(gain) > 0.05 for gain in gains), "its program is compiled for two threads"


def test_no_program_shares_its_qpu() -> None:
    frames = [frame for frame in frames_of(RUN) if len(frame.draws)]
    assert max(frame.draws["threads"].max() for frame in frames) == 2
    assert all(frame.draws["threads"].max() == 1 for frame in with_one_thread(frames))
    assert max(frame.draws["threads"].max() for frame in frames) == 2, "they are copies"
