"""Segments of shaders, and the routes that runs take."""

import pytest
from tests.support.compute import END

from vc4lab.qpu.text.assembler import assemble
from vc4lab.timing.compute.kinds import Flag
from vc4lab.timing.graphics.shaders.programs import SegmentedProgram
from vc4lab.timing.graphics.shaders.tables import ShaderTables

NONE = Flag(0)


def cut(text: str, offset: int = 0) -> SegmentedProgram:
    return SegmentedProgram(assemble(text).words, offset, 2)


def segments(text: str, offset: int = 0) -> list[tuple[int, Flag, int]]:
    """First instruction, what it meets, and how many instructions, of each segment of a program."""
    program = cut(text, offset)
    runs = [program.runs[number] for number in program.way().runs]
    return [(run.first, run.meets, run.slots) for run in runs]


def test_a_segment_begins_where_something_is_met() -> None:
    text = (
        "nop\nmov r0, vary\nmov recip, r0\nnop\nmov t0t, r0\nmov t0s, r0\nnop\nnop ; nop ; ldtmu0\n"
        "nop\nmov tlbz, r0\nmov tlbc, r0" + END
    )
    assert segments(text) == [
        (0, NONE, 1),
        (1, Flag.VARYING, 1),
        (2, Flag.SFU, 2),
        (4, Flag.UNIFORM, 1),  # the parameter is the first word of uniforms
        (5, Flag.LOOKUP0, 2),
        (7, Flag.RESULT0, 2),
        (9, Flag.LOCK, 2),
        (11, Flag.END, 3),
    ]
    program = cut(text)
    request, last = (program.runs[number] for number in program.way().runs[4:7:2])
    assert (request.words, request.uniforms, last.tile) == (2, 1, 2)


def test_only_lines_of_uniforms_are_met() -> None:
    """Word 14 makes the next line come, word 16 waits for it."""
    text = "mov r0, unif\n" * 20 + END
    assert segments(text) == [
        (0, Flag.UNIFORM, 14),
        (14, Flag.MOVES_UNIFORMS, 2),
        (16, Flag.UNIFORM, 4),
        (20, Flag.END, 3),
    ]
    assert segments(text, 15)[:2] == [(0, Flag.UNIFORM | Flag.MOVES_UNIFORMS, 1), (1, Flag.UNIFORM, 14)]


def test_another_place_of_uniforms_is_fetched_when_it_is_known() -> None:
    text = "mov r0, unif\nmov unif_addr, r0\nnop\nnop\nmov r0, unif" + END
    assert segments(text) == [
        (0, Flag.UNIFORM, 1),
        (1, Flag.MOVES_UNIFORMS, 3),
        (4, Flag.UNIFORM, 1),
        (5, Flag.END, 3),
    ]


def test_threads_are_switched_after_two_more_instructions() -> None:
    text = "nop ; nop ; thrsw\nnop\nnop\nnop\nnop ; nop ; lthrsw\nnop\nnop\nmov tlbc, 0" + END
    assert segments(text) == [
        (0, NONE, 3),
        (3, Flag.SWITCH, 4),
        (7, Flag.LAST_SWITCH | Flag.LOCK, 1),
        (8, Flag.END, 3),
    ]


def test_the_end_gives_the_tile_back() -> None:
    text = "mov tlbc, 0\nnop ; nop ; thrend\nnop\nnop ; nop ; sbdone\n"
    assert segments(text) == [(0, Flag.LOCK, 1), (1, Flag.END, 3)]
    early = "mov tlbc, 0\nnop ; nop ; sbdone\nnop\nnop" + END
    assert segments(early) == [(0, Flag.LOCK, 1), (1, Flag.UNLOCK, 3), (4, Flag.END, 3)]


VPM = "ldi vr_setup, 0x201a00\nmov r0, vpm\nldi vr_setup, 0x80000000\nmov vpm, r0"


def test_a_set_up_of_the_dma_is_none_of_the_vpm() -> None:
    assert [meets for _, meets, _ in segments(VPM + END)] == [
        Flag.VPM_SETUP, Flag.VPM_READ, Flag.VPM_WRITE, Flag.END,
    ]  # fmt: skip


LOOP = "nop\nagain: nop\nnop\nbrr.anyz -, again\nnop\nnop\nnop\nnop" + END
"""Two instructions, then rounds of six."""
FORWARD = "nop\nbrr.anyz -, over\nnop\nnop\nnop\nnop\nnop\nover: nop" + END


@pytest.mark.parametrize("rounds", [1, 2, 5, 60])
def test_loops_go_round_as_often_as_was_counted(rounds: int) -> None:
    way = cut(LOOP).way(1 + 6 * rounds + 4)
    assert way.exact
    assert way.instructions == 1 + 6 * rounds + 4


def test_without_a_count_a_loop_goes_round_once() -> None:
    assert cut(LOOP).way().instructions == 11


def test_a_forward_branch_is_taken_if_that_fits() -> None:
    taken, not_taken = cut(FORWARD).way(9), cut(FORWARD).way(11)
    assert (taken.instructions, not_taken.instructions) == (9, 11)
    assert taken.exact
    assert not_taken.exact


def test_a_count_that_no_route_has() -> None:
    way = cut(LOOP).way(13)
    assert not way.exact
    assert way.instructions == 11


def test_a_run_that_never_ends_is_cut() -> None:
    program = cut("again: brr -, again\nnop\nnop\nnop")
    assert program.way(1 << 30).instructions <= 4
    assert program.way().instructions == 4


def test_a_program_of_nothing_has_a_segment() -> None:
    assert SegmentedProgram((), 0, 2).way().runs == (0,)


def test_rows_share_segments_and_routes() -> None:
    tables = ShaderTables(2)
    words = assemble(LOOP).words
    rows = [tables.row(words, 0x1000, at, 1, 11) for at in (0x40, 0x80, 0x80, 0x44)]
    assert rows == [0, 1, 1, 2]
    shaders = tables.shaders
    assert shaders["first_step"][0] == shaders["first_step"][1]
    assert shaders["program"].tolist() == [0, 0, 0]
    segments_before = len(tables.segments)
    tables.begin()
    assert tables.row(words, 0x1000, 0x40, 1, 11) == 0
    assert len(tables.segments) == segments_before
    assert len(tables.owners) == segments_before
