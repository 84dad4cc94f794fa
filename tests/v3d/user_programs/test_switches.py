"""Undocumented behaviour of user programs that other tests do not tell apart: every choice."""

from typing import Any

import numpy as np
import pytest
from tests.support.compute import DATA, END, ENGINES, Board, run

from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

ROWS = "ldi vw_setup, 0x1a00\n"


def chosen(name: str, program: str, uniforms: Any = (), **options: Any) -> dict[str, Any]:
    """The outcome with each choice, the same on both engines."""
    from vc4lab.diagnostics.unknown import find

    found = {}
    for choice in find(name).choices:
        unknowns = DEFAULT_UNKNOWNS.with_(**{name: choice})
        reference, native = (
            run(engine, program + END, uniforms, unknowns=unknowns, **options) for engine in ENGINES
        )
        assert reference.differences(native) == []
        found[choice] = native
    return found


def test_uniforms_behind_the_length() -> None:
    found = chosen("uniforms_length", ROWS + "mov vpm, unif\n" * 4, [5, 6, 7, 8], length=2)
    rows = {choice: outcome.vpm[:4, 0].tolist() for choice, outcome in found.items()}
    assert rows == {"limit": [5, 6, 0, 0], "prefetch": [5, 6, 7, 8]}


def test_relative_uniforms_addresses() -> None:
    """A write of B 40 moves on from the word after the one it reads."""
    program = ROWS + "mov rb40, unif\nnop\nnop\nmov vpm, unif"
    data = np.array([11, 12, 13, 14], np.uint32)
    found = chosen("uniforms_address_b", program, [DATA + 4, 21, 22, 23], data=data)
    assert found["absolute"].vpm[0, 0] == 12
    found = chosen("uniforms_address_b", program, [8, 21, 22, 23])
    assert found["relative"].vpm[0, 0] == 23


@pytest.mark.parametrize(("condition", "seen"), [("ns", 12), ("nc", 21)])
def test_conditional_writes_of_the_uniforms_address(condition: str, seen: int) -> None:
    """The condition holds in lane 0 only, or in all others."""
    program = ROWS + f"mov r0, unif\nsub.setf -, elem_num, 1\nmov.{condition} unif_addr, r0\n"
    program += "nop\nnop\nmov vpm, unif"
    data = np.array([11, 12, 13, 14], np.uint32)
    name, uniforms = "uniforms_address_condition", [DATA + 4, 21, 22, 23]
    found = chosen(name, program, uniforms, data=data)
    assert {choice: outcome.vpm[0, 0] for choice, outcome in found.items()} == {"lane-0": seen, "ignored": 12}


@pytest.mark.parametrize(("choice", "written"), [("all", 7), ("none", 0)])
def test_the_vpm_while_nobody_reserved_it(choice: str, written: int) -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(vpm_unreserved=choice)
    for engine in ENGINES:
        board = Board(engine, unknowns=unknowns)
        assert board.programs.reserved_rows == 0
        board.start(ROWS + "mov vpm, 7" + END)
        outcome = board.finish()
        assert outcome.vpm[0, 3] == written
        assert outcome.codes == ({} if written else {"QPU-059": 1})


def test_which_bytes_a_store_takes() -> None:
    """Three bytes of a row whose bytes are numbers, from byte offset 1."""
    program = ROWS + "ldi r0, 0x03020100\nldi r1, 0x04040404\nnop ; mul24 r1, r1, elem_num\n"
    program += "ldi r2, 4\nnop ; mul24 r2, elem_num, r2\nmov r1, r2\nshl r2, r2, 8\nor r1, r1, r2\n"
    program += "shl r2, r2, 8\nor r1, r1, r2\nshl r2, r2, 8\nor r1, r1, r2\nadd vpm, r0, r1\n"
    setup = 2 << 30 | 1 << 23 | 3 << 16 | 1 << 14 | 5
    program += f"ldi vw_setup, 0xc0000000\nldi vw_setup, {setup}\nldi vw_addr, {DATA}\n"
    found = chosen("dma_subword", program + "mov -, vw_wait")
    data = {c: list(o.memory[:1].tobytes()[:3]) for c, o in found.items()}
    assert data == {"elements": [1, 2, 3], "quarters": [16, 17, 18], "lanes": [1, 5, 9]}


def test_rows_that_go_on_behind_column_15() -> None:
    program = "ldi vw_setup, 0x1a00\nmov vpm, elem_num\nadd vpm, elem_num, 15\n"
    setup = 2 << 30 | 1 << 23 | 4 << 16 | 1 << 14 | 14 << 3
    program += f"ldi vw_setup, 0xc0000000\nldi vw_setup, {setup}\nldi vw_addr, {DATA}\n"
    found = chosen("dma_row_end", program + "mov -, vw_wait")
    assert found["next"].memory[:4].tolist() == [14, 15, 15, 16]
    assert found["wrap"].memory[:4].tolist() == [14, 15, 0, 1]


def test_what_the_mutex_reads() -> None:
    found = chosen("mutex_read", ROWS + "mov r0, mutex\nmov vpm, r0\nmov mutex, 0")
    assert found["element"].vpm[0].tolist() == list(range(16))
    assert set(found["constant"].vpm[0].tolist()) == {0xFC2FF000}


def test_what_an_idle_dma_reads() -> None:
    found = chosen("dma_busy_read", ROWS + "mov vpm, ra49\nmov vpm, rb49")
    assert found["status"].vpm[:2].sum() == 0
    assert found["unmapped"].vpm[0].tolist() == list(range(16))
    assert set(found["unmapped"].vpm[1].tolist()) == {0}  # the number of the QPU


def test_long_pitches() -> None:
    """Pitches of 8 KiB, as sgemm's 12,288 (right on boards), and of 16 KiB, which wrap there."""
    setup = 1 << 31 | 1 << 20 | 2 << 16 | 1 << 12
    program = ""
    for y, pitch in ((0, 8196), (2, 16388)):
        program += f"ldi vr_setup, {9 << 28 | pitch}\nldi vr_setup, {setup | y << 4}\n"
        program += f"ldi vr_addr, {DATA}\nmov -, vr_wait\n"
    data = np.arange(8192, dtype=np.uint32) + 100
    found = chosen("vdr_stride_bits", program, data=data)
    rows = {choice: outcome.vpm[:4, 0].tolist() for choice, outcome in found.items()}
    assert rows == {"13": [100, 101, 100, 101], "14": [100, 2149, 100, 101], "16": [100, 2149, 100, 4197]}


def test_long_strides() -> None:
    program = "ldi vw_setup, 0x1a00\nmov vpm, 7\nmov vpm, 9\n"
    setup = 2 << 30 | 2 << 23 | 1 << 16 | 1 << 14
    program += f"ldi vw_setup, {0xC0000000 | 8192}\nldi vw_setup, {setup}\nldi vw_addr, {DATA}\n"
    found = chosen("vdw_stride_bits", program + "mov -, vw_wait")
    places = {choice: np.flatnonzero(o.memory).tolist() for choice, o in found.items()}
    assert places == {"16": [0, 2049], "13": [0, 1]}
