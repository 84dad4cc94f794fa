"""What programs do is recorded, the same by both engines, and nothing else changes."""

import pytest
from tests.support.compute import DATA, ENGINES, Board, Outcome

from vc4lab.memory.native import QUAD_SHIFT
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.events import ProgramRecorded
from vc4lab.v3d.user_programs.recording.format import ROOM, Kind, header

EVERYTHING = """
        mov  r3, unif
        mov  r1, unif
again:  mov  t0s, r1
        nop ; nop ; ldtmu0
        mov  t1t, 0
        mov  t1s, 0
        nop ; nop ; ldtmu1
        ldi  vr_setup, 0x201a00
        mov  r2, vpm
        mov  r2, vpm
        ldi  vw_setup, 0x1a00
        mov  vpm, r2
        ldi  vr_setup, 0x83401000
        mov  vr_addr, r1
        mov  -, vr_wait
        ldi  vw_setup, 0x80104000 | 16 << 23
        mov  vw_addr, r1
        mov  -, vw_wait
        srel -, 2
        sacq -, 2
        mov  tmurs, 1
        sub.setf r3, r3, 1
        mov  unif_addr, r1
        brr  ra0, sub
        nop
        nop
        nop
        brr.anynz again
        nop
        nop
        nop
        nop ; nop ; thrend
        nop
        nop
sub:    bra  -, ra0
        nop
        nop
        nop
"""
TEXTURE = [DATA, 0x100 << 8 | 0x100 << 20]


def recorded(
    engine: str, program: str, uniforms: list[list[int]], listens: bool = True
) -> tuple[Outcome, dict[int, list[int]], dict[int, tuple[int, bool]]]:
    """What programs did, the words of each QPU, and (instructions, ended) of each."""
    board = Board(engine, threads=1)
    board.memory.array(DATA, 2, "u4")[:] = TEXTURE
    words: dict[int, list[int]] = {}
    ends: dict[int, tuple[int, bool]] = {}

    def take(event: ProgramRecorded) -> None:
        words.setdefault(event.qpu, []).extend(event.record)
        ends[event.qpu] = event.executed, event.ended

    def go() -> Outcome:
        code = board.load(program)
        for one in uniforms:
            board.start(code, one)
        return board.finish()

    if not listens:
        return go(), words, ends
    with board.programs.listeners.program_recorded.subscribe(take):
        return go(), words, ends


def test_both_engines_record_the_same() -> None:
    uniforms = [[5 + number, DATA, *TEXTURE] for number in range(3)]
    reference, native = (recorded(engine, EVERYTHING, uniforms) for engine in ENGINES)
    assert not reference[0].differences(native[0])
    assert reference[1:] == native[1:]
    assert all(ended for _, ended in reference[2].values())
    kinds = {word >> 4 & 15 for word in reference[1][0] if word >> 8 < len(assemble(EVERYTHING).words)}
    assert kinds >= set(Kind)


@pytest.mark.parametrize("engine", ENGINES)
def test_recording_changes_nothing(engine: str) -> None:
    uniforms = [[4, DATA, *TEXTURE]] * 2
    plain, heard = (recorded(engine, EVERYTHING, uniforms, listens)[0] for listens in (False, True))
    assert not plain.differences(heard)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_words(engine: str) -> None:
    program = (
        "mov t0s, elem_num\nnop ; nop ; ldtmu0\nbrr -, on\nnop\nnop\nnop\nnop\n"
        "on: mov.setf -, 0\nbrr.anynz on\nnop\nnop\nnop\nnop ; nop ; thrend\nnop\nnop\n"
    )
    _, words, ends = recorded(engine, program, [[]])
    assert words[0] == [
        header(0, Kind.LOOKUP), *range(16),
        header(2, Kind.TAKEN), 0x10000 + 7 * 8,
        header(8, Kind.STRAIGHT),
    ]  # fmt: skip
    assert ends[0] == (14, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_has_the_lines_of_each_quad(engine: str) -> None:
    """All lanes sample the first texel; the one after the edge is the same."""
    clamped = [DATA, TEXTURE[1] | 1 | 1 << 2]
    program = "mov t1t, 0\nmov t1s, 0\nnop ; nop ; ldtmu1\nnop ; nop ; thrend\nnop\nnop\n"
    _, words, _ = recorded(engine, program, [clamped])
    lines = [quad << QUAD_SHIFT | DATA >> 6 for quad in range(4)]
    assert words[0] == [header(1, Kind.TEXTURE, 1), DATA, 4, *lines]


def test_a_texture_that_was_sampled_before_is_recorded_later() -> None:
    """Native code knows it already when a listener comes."""
    board = Board("jit", threads=1)
    code = board.load("mov t0t, 0\nmov t0s, 0\nnop ; nop ; ldtmu0\nnop ; nop ; thrend\nnop\nnop\n")
    board.start(code, TEXTURE)
    board.finish()
    words: list[int] = []
    with board.programs.listeners.program_recorded.subscribe(lambda e: words.extend(e.record)):
        board.start(code, TEXTURE)
        board.finish()
    assert words[:3] == [header(1, Kind.TEXTURE), DATA, 16]
    board.start(code, TEXTURE)
    assert board.finish().completed == 3


def test_a_native_program_gives_its_turn_up_when_the_record_is_full() -> None:
    program = (
        "mov r3, unif\nmov r1, unif\nagain: mov t0s, r1\nnop ; nop ; ldtmu0\nsub.setf r3, r3, 1\n"
        "brr.anynz again\nnop\nnop\nnop\nnop ; nop ; thrend\nnop\nnop\n"
    )
    rounds = ROOM // 40
    _, words, ends = recorded("jit", program, [[rounds, DATA]] * 2)
    assert [len(one) for one in words.values()] == [19 * rounds - 1] * 2
    assert ends[0] == ends[1] == (2 + 7 * rounds + 3, True)


def test_a_program_that_waits_for_ever_is_recorded_up_to_there() -> None:
    for engine in ENGINES:
        _, words, ends = recorded(engine, "nop\nsacq -, 4\nnop ; nop ; thrend\nnop\nnop\n", [[]])
        assert (words[0], ends[0]) == ([], (1, False))
