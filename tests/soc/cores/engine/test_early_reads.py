"""Loads from what the GPU still writes: frames, and what user programs store by DMA."""

import struct

import pytest
from tests.soc.test_v3d_time import Board

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.qpu.text.assembler import assemble

FRAME, WIDTH, HEIGHT, PAGE = 0x400000, 640, 360, 4096
SIZE = 2 * WIDTH * HEIGHT
V3D, RFC, SRQCS = 0x3FC00000, 0x138, 0x43C
DATA = 0x500000
SETS_V3D, SETS_PLACE = 0xE59F0000, 0xE59F2000
"""ldr r0 or r2, [pc, #...]: the V3D's address, that of the load."""
LOOK, DONE, AGAIN, LOAD, HALT = 0xE5903000, 0xE3530000, 0x0AFFFFFC, 0xE5924000, 0xEAFFFFFE
"""ldr r3, [r0, #...]; cmp r3, #0; beq; ldr r4, [r2]; b ."""
STORE = (
    "ldi vw_setup, 0x1a00\nmov vpm, unif\nldi vw_setup, 0x80904000\nmov vw_addr, unif\n"
    "mov -, vw_wait\nnop ; nop ; thrend\nnop\nnop\n"
)


def program(writes: dict[int, int], looks: int, waits: bool, place: int) -> bytes:
    """Writes registers of the V3D, reads one of them once or until it is not 0, and loads."""
    literals = [V3D, *writes.values(), place]
    code: list[tuple[int, int | None]] = [(SETS_V3D, 0)]
    for number, offset in enumerate(writes, 1):
        code += [(0xE59F1000, number), (0xE5801000 | offset, None)]
    code.append((LOOK | looks, None))
    if waits:
        code += [(DONE, None), (AGAIN, None)]
    code += [(SETS_PLACE, len(literals) - 1), (LOAD, None), (HALT, None)]
    words = []
    for number, (word, literal) in enumerate(code):
        distance = 0 if literal is None else 4 * (len(code) + literal - number) - 8
        words.append(word | distance)
    words += literals
    return struct.pack(f"<{len(words)}I", *words)


def run(board: Board, code: bytes, seconds: float = 0.01) -> list[str]:
    machine = board.machine
    machine.memory.write(0x8000, code)
    machine.cpu.pc = 0x8000
    machine.run(seconds=seconds)
    return [item.code for item in machine.reporter.items if item.code == "SOC-114"]


def render(board: Board) -> dict[int, int]:
    return {0x114: board.list[0], 0x10C: board.list[1]}


@pytest.mark.parametrize("place", [FRAME, FRAME + PAGE + 8, FRAME + SIZE - 4])
def test_a_frame_that_is_not_waited_for(boot, place):
    board = Board(boot)
    assert run(board, program(render(board), RFC, False, place)) == ["SOC-114"]
    text = board.machine.reporter.items[-1].message
    assert f"0x{place:08x} is read, where the V3D writes for 21" in text
    board = Board(boot)
    assert not run(board, program(render(board), RFC, True, place))
    assert board.machine.cpu.register(4) != 0xFFFFFFFF


@pytest.mark.parametrize("place", [FRAME - 4, FRAME + SIZE])
def test_beside_the_frame_nothing_is_written(boot, place):
    board = Board(boot)
    assert not run(board, program(render(board), RFC, False, place))


def test_rows_that_the_frame_does_not_store(boot):
    """A list that stores one row of tiles, and a load below them."""
    board = Board(boot)
    start, end = board.list
    data = board.machine.memory.read(start, end - start)
    one_row = data[: data.index(bytes((115, 0, 1)))]
    assert one_row[-1] == 24
    board.machine.memory.write(start, one_row[:-1] + b"\x19")
    writes = {0x114: start, 0x10C: start + len(one_row)}
    assert not run(board, program(writes, RFC, False, FRAME + 64 * 2 * WIDTH))
    board.machine.memory.write(start, one_row[:-1] + b"\x19")
    assert run(board, program(writes, RFC, False, FRAME + 64 * 2 * WIDTH - 4)) == ["SOC-114"]


def test_the_first_time_only_and_never_on_request(boot):
    board = Board(boot)
    code = program(render(board), RFC, False, FRAME)
    assert run(board, code) == ["SOC-114"]
    assert run(board, code) == ["SOC-114"]
    forgiving = Board(lambda *card, **options: boot(*card, forgiving=True, **options))
    assert not run(forgiving, program(render(forgiving), RFC, False, FRAME))


def test_strict_mode_stops(boot):
    board = Board(lambda *card, **options: boot(*card, reporter=Reporter(strict=True), **options))
    with pytest.raises(StrictStop, match="SOC-114"):
        run(board, program(render(board), RFC, False, FRAME))


def test_with_several_cores_that_run(boot):
    """The TLBs of all are emptied; the code is core 0's, the others count."""
    board = Board(boot, struct.pack("<2I", 0xE2866001, 0xEAFFFFFD))
    machine = board.machine
    machine.run(seconds=0.0001)
    machine.memory.write(0x9000, struct.pack("<2I", 0xE2866001, 0xEAFFFFFD))
    for core in (1, 2, 3):
        machine.processors.release(core, 0x9000)
    assert run(board, program(render(board), RFC, False, FRAME)) == ["SOC-114"]


def compute(board: Board) -> dict[int, int]:
    uniforms = board.job.put(struct.pack("<II", 77, DATA))
    return {0x434: uniforms, 0x430: board.job.put(assemble(STORE).bytes)}


def test_a_user_program_that_is_not_waited_for(boot):
    """Without a look at the V3D the old word is found, with one that does not wait it is named."""
    board = Board(boot)
    code = program(compute(board), 0, False, DATA)
    nothing = struct.pack("<I", LOOK)
    assert not run(board, code.replace(nothing, struct.pack("<I", 0xE1A00000)))
    assert board.machine.cpu.register(4) == 0
    board = Board(boot)
    assert run(board, program(compute(board), SRQCS, False, DATA)) == ["SOC-114"]
    assert "a user program writes for" in board.machine.reporter.items[-1].message


def test_beside_what_a_user_program_stores(boot):
    board = Board(boot)
    assert not run(board, program(compute(board), SRQCS, False, DATA + 64))


def test_a_program_that_waits_for_memory(boot):
    """A flag that the program on the QPU stores: that is no mistake."""
    board = Board(boot)
    code = program(compute(board), 0, False, DATA)
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    load = words.index(LOAD)
    words[words.index(LOOK)] = 0xE1A00000
    words[load + 1 : load + 1] = [0xE3540000, 0x0AFFFFFC]  # cmp r4, #0; beq
    for number, word in enumerate(words[: load + 1]):
        if word & 0xFFFF0000 in (0xE59F0000, 0xE59F1000 & 0xFFFF0000):
            words[number] = word + 8
    assert not run(board, struct.pack(f"<{len(words)}I", *words))
    assert board.machine.cpu.register(4) == 77
