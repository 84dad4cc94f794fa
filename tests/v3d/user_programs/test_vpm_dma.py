"""VPM access and DMA in every mode: what is known about the chip, and reference = native."""

import random
from typing import Any

import numpy as np
import pytest
from tests.support import dma_reference
from tests.support.compute import DATA, END, ENGINES, Board, run

from vc4lab.memory import GuestMemory
from vc4lab.simd import build, eager
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.user_programs.native.dma import transfer
from vc4lab.v3d.user_programs.state import QpuState, Setups, SharedState, vpm_bytes
from vc4lab.v3d.vpm.setup import VPM_BYTES


def both(program: str, uniforms: Any = (), **options: Any) -> Any:
    """The native outcome, after comparing it with the reference one."""
    reference, native = (run(engine, program, uniforms, **options) for engine in ENGINES)
    assert reference.differences(native) == []
    return native


def write_rows(first: int, count: int) -> str:
    """Write 100 * row + lane to rows."""
    lines = [f"ldi vw_setup, 0x1a00 | {first}"]
    for row in range(first, first + count):
        lines += [f"ldi r0, {100 * row}", "add vpm, r0, elem_num"]
    return "\n".join(lines) + "\n"


def rows_of(outcome: Any, count: int) -> Any:
    return outcome.vpm[:count]


@pytest.mark.parametrize("engine", ENGINES)
def test_vertical_stride_walk_of_x03(engine: str) -> None:
    """0x0041020F: NUM 4, vertical 32 bit, stride 16 from column 15: rows 0-15, 16-31, ..."""
    program = write_rows(0, 64) + "ldi vr_setup, 0x0041020f\nnop\nnop\nnop\n"
    program += "ldi ra4, 0\n"
    program += "\n".join(f"mov ra{n}, vpm" for n in range(4))
    program += "\nldi vw_setup, 0x0001020f\n"  # the same column, written back plus one
    program += "\n".join(f"add vpm, ra{n}, 1" for n in range(4)) + END
    outcome = run(engine, program)
    expected = 100 * np.arange(64)[:, None] + np.arange(16)
    expected[:, 15] += 1
    assert np.array_equal(rows_of(outcome, 64), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_sixteen_vertical_loads_transpose(engine: str) -> None:
    """py-videocore's board test: NROWS 4, VPITCH 16, column x for row x of a 16x64 matrix."""
    matrix = np.arange(16 * 64, dtype=np.uint32).reshape(16, 64)
    program = "mov r0, unif\nldi r1, 256\nldi vr_setup, 0x90000000 | 64\n"
    for x in range(16):
        program += f"ldi vr_setup, 0x80040800 | {x}\nmov vr_addr, r0\nadd r0, r0, r1\n"
        program += "mov -, vr_wait\n"
    outcome = run(engine, program + END, [DATA], data=matrix.ravel())
    assert np.array_equal(rows_of(outcome, 64), matrix.T)


def element(size: int, horizontal: bool, laned: bool, number: int, i: int) -> tuple[int, int, int]:
    """(row, word column, byte) of element i: the table of hardware reference 5.2."""
    per_word = 4 // size
    part = number % per_word
    block = number // per_word
    across = i if laned or size == 4 else 16 // per_word * part + i // per_word
    byte = 0 if size == 4 else size * (part if laned else i % per_word)
    if horizontal:
        return block % 64, across, byte
    return (16 * (block >> 4) + across) % 64, block & 15, byte


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("horizontal", [False, True])
@pytest.mark.parametrize("laned", [False, True])
def test_vectors_are_where_the_table_says(size: int, horizontal: bool, laned: bool) -> None:
    """Three vectors are read, at strides that wrap, and one that is 0 and means 64."""
    r = random.Random(f"{size} {horizontal} {laned}")
    data = np.random.default_rng(size).integers(0, 1 << 32, 64 * 16, np.uint32)
    raw = data.view(np.uint8).reshape(64, 64)
    field = 64 * 4 // size if size < 4 else 64
    for stride in (0, 63, r.randrange(64)):
        number = r.randrange(field)
        setup = 3 << 20 | stride << 12 | horizontal << 11 | laned << 10 | {1: 0, 2: 1, 4: 2}[size] << 8
        program = "mov r0, unif\nldi r1, 1024\n"
        for quarter in range(4):
            load = 1 << 31 | 3 << 24 | 1 << 12 | 16 * quarter << 4
            program += f"ldi vr_setup, {load}\nmov vr_addr, r0\nadd r0, r0, r1\nmov -, vr_wait\n"
        program += f"ldi vr_setup, {setup | number}\nnop\nnop\nnop\n"
        program += "".join(f"mov ra{n}, vpm\n" for n in range(3)) + "ldi vw_setup, 0x1a00\n"
        program += "".join(f"mov vpm, ra{n}\n" for n in range(3))
        outcome = both(program + END, [DATA], data=data)
        for n in range(3):
            here = (number + n * (stride or 64)) % field
            for i in range(16):
                row, column, byte = element(size, horizontal, laned, here, i)
                place = 4 * column + byte
                expected = int.from_bytes(raw[row, place : place + size].tobytes(), "little")
                assert outcome.vpm[n, i] == expected, (stride, number, n, i)


@pytest.mark.parametrize("engine", ENGINES)
def test_small_horizontal_block(engine: str) -> None:
    """py-videocore: an 8x8 block at X = 4, Y = 4, memory pitch 32 bytes."""
    data = np.arange(64, dtype=np.uint32) + 7
    setup = 1 << 31 | 2 << 24 | 8 << 20 | 8 << 16 | 1 << 12 | 4 << 4 | 4
    outcome = run(engine, f"ldi vr_setup, {setup}\nmov vr_addr, unif" + END, [DATA], data=data)
    assert np.array_equal(outcome.vpm[4:12, 4:12], data.reshape(8, 8))
    assert outcome.vpm[4:12, :4].sum() == 0
    assert outcome.vpm[4:12, 12:].sum() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_vertical_units_walk_columns_then_sixteen_rows_down(engine: str) -> None:
    """x03 demo d2: UNITS 4, DEPTH 16 from Y = 0, X = 15 takes (0,15), (16,0), (16,1), (16,2)."""
    setup = 2 << 30 | 4 << 23 | 16 << 16 | 15 << 3
    program = write_rows(0, 32) + f"ldi vw_setup, {setup}\nldi vw_setup, 0xc0000000\n"
    outcome = run(engine, program + "mov vw_addr, unif\nmov -, vw_wait" + END, [DATA])
    rows = np.arange(16)
    expected = [100 * rows + 15, *(100 * (16 + rows) + x for x in range(3))]
    assert np.array_equal(outcome.memory[:64], np.concatenate(expected))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_load_of_x03_d3(engine: str) -> None:
    """0x8304080F: vertical, four rows of 16 elements, pitch 64, into column 15."""
    data = np.arange(64, dtype=np.uint32) + 1
    outcome = run(engine, "ldi vr_setup, 0x8304080f\nmov vr_addr, unif" + END, [DATA], data=data)
    assert np.array_equal(outcome.vpm[:64, 15], data)


@pytest.mark.parametrize("engine", ENGINES)
def test_store_stride_is_a_gap_and_kept(engine: str) -> None:
    setup = 2 << 30 | 2 << 23 | 4 << 16 | 1 << 14
    program = write_rows(0, 2) + f"ldi vw_setup, 0xc0000010\nldi vw_setup, {setup}\n"
    outcome = run(engine, program + "mov vw_addr, unif" + END, [DATA])
    assert outcome.memory[:12].tolist() == [0, 1, 2, 3, 0, 0, 0, 0, 100, 101, 102, 103]


def vector_in_column(column: int) -> str:
    """100 * column + lane as a vertical vector in a column of rows 0 to 15."""
    return f"ldi vw_setup, {0x1200 | column}\nldi r0, {100 * column}\nadd vpm, r0, elem_num\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("choice", ["ignored", "packed"])
def test_block_mode_packs_nothing_of_sixteen_units_of_depth_1(engine: str, choice: str) -> None:
    """Each store of QPULib: a vertical vector, 16 horizontal units of 1, BLOCKMODE = 1."""
    setup = 2 << 30 | 16 << 23 | 1 << 16 | 1 << 14 | 5 << 3
    program = vector_in_column(5) + f"ldi vw_setup, {setup}\nldi vw_setup, 0xc0010000\n"
    program += f"ldi vw_addr, {DATA}\nmov -, vw_wait"
    unknowns = DEFAULT_UNKNOWNS.with_(vdw_blockmode=choice)
    outcome = run(engine, program + END, unknowns=unknowns)
    assert outcome.memory[:17].tolist() == [*range(500, 516), 0]


@pytest.mark.parametrize(
    ("units", "depth", "horizontal", "apart", "packed"),
    [
        (2, 4, 1, [0, 1, 2, 3, 100, 101, 102, 103], [0, 1, 2, 3, 4, 5, 6, 7]),
        (8, 1, 1, [100 * n for n in range(8)], list(range(8))),
        (2, 4, 0, [0, 100, 200, 300, 1, 101, 201, 301], [100 * n for n in range(8)]),
    ],
)
def test_block_mode_of_other_shapes(units: int, depth: int, horizontal: int, apart: Any, packed: Any) -> None:
    setup = 2 << 30 | units << 23 | depth << 16 | horizontal << 14
    program = write_rows(0, 8) + f"ldi vw_setup, {setup}\nldi vw_setup, 0xc0010000\n"
    program += f"ldi vw_addr, {DATA}\nmov -, vw_wait"
    default, other = switched("vdw_blockmode", "packed", program)
    assert default.memory[:9].tolist() == [*apart, 0]
    assert other.memory[:9].tolist() == [*packed, 0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", [0, 2])
def test_vertical_stores_wrap_inside_sixteen_rows(engine: str, mode: int) -> None:
    """vc4asm issue 27: 16 units of depth 32 give the first 16 rows twice."""
    depth = 32 if mode == 0 else 64
    setup = 2 << 30 | 16 << 23 | depth << 16 | mode
    program = write_rows(0, 32) + f"ldi vw_setup, {setup}\nldi vw_setup, 0xc0000000\n"
    outcome = run(engine, program + f"ldi vw_addr, {DATA}\nmov -, vw_wait" + END)
    found = outcome.memory[: 16 * 32].reshape(16, 32)
    expected = (100 * np.arange(16)[:, None] + np.arange(16)).T
    assert np.array_equal(found[:, :16], expected)
    assert np.array_equal(found[:, 16:], expected)


def test_vertical_blocks_that_leave_their_rows() -> None:
    """20 words of a column stored from row 4; 16 words loaded into one from row 4."""
    setup = 2 << 30 | 1 << 23 | 20 << 16 | 4 << 7
    program = write_rows(0, 32) + f"ldi vw_setup, {setup}\nldi vw_setup, 0xc0000000\n"
    program += f"ldi vw_addr, {DATA}\nmov -, vw_wait"
    default, other = switched("vdw_vertical_wrap", "start", program)
    turned = [*range(400, 1600, 100), 0, 100, 200, 300]
    assert default.memory[:20].tolist() == [*turned, *turned[:4]]
    assert other.memory[:20].tolist() == [*range(400, 2000, 100), *range(400, 800, 100)]
    setup = 1 << 31 | 1 << 16 | 1 << 11 | 4 << 4
    program = f"ldi vr_setup, {setup}\nldi vr_addr, {DATA}\nmov -, vr_wait"
    data = np.arange(16, dtype=np.uint32) + 1
    default, other = switched("vdr_vertical_wrap", "group", program, data=data)
    assert default.vpm[4:20, 0].tolist() == list(range(1, 17))
    assert other.vpm[:16, 0].tolist() == [13, 14, 15, 16, *range(1, 13)]


@pytest.mark.parametrize("engine", ENGINES)
def test_read_setup_is_ignored_while_two_vectors_are_unread(engine: str) -> None:
    program = write_rows(0, 4) + "ldi vr_setup, 0x301a00\nldi vr_setup, 0x101a03\nnop\n"
    program += "mov r0, vpm\nmov r1, vpm\nldi vr_setup, 0x101a03\nmov r2, vpm\nmov r3, vpm\n"
    program += "ldi vw_setup, 0x1a10\nmov vpm, r0\nmov vpm, r1\nmov vpm, r2\nmov vpm, r3"
    outcome = run(engine, program + END)
    assert outcome.vpm[16:20, 0].tolist() == [0, 100, 200, 300]
    assert outcome.codes == {"QPU-054": 1}


def generic(r: random.Random, number: int = 0) -> int:
    """A generic setup word."""
    fields = r.choice((r.getrandbits(12), r.getrandbits(8) | 0xA00))
    return fields | r.choice((1, 1, r.getrandbits(6))) << 12 | number << 20


def load_setup(r: random.Random) -> int:
    mode = r.choice((0, 0, 0, 2, 3, 4, 5, 6, 7))
    word = 1 << 31 | mode << 28 | r.getrandbits(28)
    return word & ~(15 << 24) | r.choice((0, 0, 1, 2, 3, 5)) << 24


def store_setup(r: random.Random) -> int:
    units, depth = r.choice((1, 2, 3, 16, 17)), r.choice((1, 3, 15, 16, 17, 40, 64))
    mode = r.choice((0, 0, 0, 1, 2, 3, 4, 5, 6, 7))
    return 2 << 30 | units << 23 | depth << 16 | r.getrandbits(12) << 3 | mode


def accesses(r: random.Random) -> str:
    """A program that uses the VPM in random ways and stores what it saw."""
    lines = [f"ldi r0, {r.getrandbits(32)}", "mul24 r1, elem_num, r0; nop"]
    lines = [f"ldi r0, {r.getrandbits(32)}", "nop; mul24 r1, r0, elem_num"]
    for _ in range(r.randrange(2, 7)):
        kind = r.randrange(4)
        if kind == 0:
            lines.append(f"ldi vw_setup, {generic(r)}")
            for _ in range(r.randrange(1, 5)):
                lines += [f"ldi r2, {r.getrandbits(32)}", "xor.setf r1, r1, r2"]
                lines.append(r.choice(("add vpm, r1, elem_num", "mov.ns vpm, r1", "mov vpm, r1")))
        elif kind == 1:
            count = r.randrange(1, 5)
            lines.append(f"ldi vr_setup, {generic(r, count)}")
            lines += ["nop"] * 3
            for _ in range(count):
                lines += ["mov r2, vpm", "add r1, r1, r2"]
        elif kind == 2:
            lines.append(f"ldi vr_setup, {9 << 28 | r.choice((4, 64, 60, 7, 0, 2048))}")
            lines += [f"ldi vr_setup, {load_setup(r)}", f"ldi vr_addr, {DATA + r.getrandbits(15)}"]
            lines.append("mov -, vr_wait")
        else:
            gap = r.choice((0, 0, 4, 64, 3, 8192, 65535 - 8191)) | r.getrandbits(1) << 16
            lines.append(f"ldi vw_setup, {3 << 30 | gap}")
            lines += [f"ldi vw_setup, {store_setup(r)}", f"ldi vw_addr, {DATA + r.getrandbits(16)}"]
            lines.append("mov -, vw_wait")
    lines += ["ldi vw_setup, 0x1a00", "mov vpm, r1"]
    return "\n".join(lines) + END


CHOICES = (
    {},
    {"dma_subword": "quarters", "dma_row_end": "wrap", "vdw_blockmode": "packed"},
    {"dma_subword": "lanes", "vdw_stride_bits": "13", "vdr_vertical_wrap": "group"},
    {
        "vpm_read_extension": "sign",
        "vdr_pitch_carry": "low",
        "dma_alignment": "rounded",
        "vdw_vertical_wrap": "start",
        "vdw_blockmode": "packed",
    },
)


@pytest.mark.parametrize("seed", range(32))
def test_golden_and_native_agree(seed: int) -> None:
    r = random.Random(seed)
    data = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 16, np.uint32)
    unknowns = DEFAULT_UNKNOWNS.with_(**CHOICES[seed % 4])
    outcome = both(accesses(r), data=data, unknowns=unknowns, words=1 << 21)
    assert outcome.completed == 1


@pytest.mark.parametrize("choices", CHOICES, ids=range(len(CHOICES)))
def test_both_engines_move_what_the_reference_moves(choices: dict[str, str]) -> None:
    """Random set-ups: the source that is compiled, eagerly and compiled, beside plain Python."""
    unknowns = DEFAULT_UNKNOWNS.with_(**choices)
    r, numbers = random.Random(7), np.random.default_rng(7)
    for _ in range(60):
        side, address = r.choice(("read", "write")), DATA + r.getrandbits(15)
        pitch = r.choice((4, 64, 60, 7, 0, 2048))
        gap = r.choice((0, 0, 4, 64, 3, 8192, 65535 - 8191)) | r.getrandbits(1) << 16
        setups = Setups(load_setup(r), pitch, store_setup(r), gap)
        data = numbers.integers(0, 256, 1 << 18, np.uint8).tobytes()
        content = numbers.integers(0, 256, VPM_BYTES, np.uint8)
        outcomes = []
        for way in ("reference", "native", "eager"):
            memory = GuestMemory(ram_bytes=1 << 24)
            memory.write(DATA, data)
            shared = SharedState(memory=memory.base, ram=memory.ram_bytes)
            vpm = vpm_bytes(shared)
            vpm[:] = content
            if way == "reference":
                dma_reference.transfer(side, vpm, memory, setups, address, unknowns)
            else:
                state = QpuState()
                setups.set(state)
                target = eager.TARGET if way == "eager" else None
                function = {"t": transfer(side, unknowns)}
                build("t", function, target=target)["t"](shared.address, state.address, address)
            outcomes.append((vpm.tobytes(), memory.read(DATA, 1 << 21)))
        assert outcomes[0] == outcomes[1] == outcomes[2], (side, setups, hex(address))


@pytest.mark.parametrize("address", [0x3FFFFFF0, 0x3FFFFFFE, 0xFFFFFFFC, 0xC0100001])
def test_transfers_over_the_end_of_memory(address: int) -> None:
    setup = 2 << 30 | 2 << 23 | 16 << 16 | 1 << 14
    program = write_rows(0, 2) + f"ldi vw_setup, {setup}\nldi vw_addr, {address}\n"
    program += f"ldi vr_setup, 0x83021000 | 2 << 4\nldi vr_addr, {address}"
    outcome = both(program + END)
    assert np.array_equal(outcome.vpm[2], outcome.vpm[0])


def switched(name: str, choice: str, program: str, **options: Any) -> tuple[Any, Any]:
    """The outcomes of both engines by default and with the choice."""
    unknowns = DEFAULT_UNKNOWNS.with_(**{name: choice})
    return both(program + END, **options), both(program + END, unknowns=unknowns, **options)


def test_narrow_reads_with_a_sign() -> None:
    program = "ldi vw_setup, 0x1a00\nldi r0, 0x80ff7f01\nmov vpm, r0\n"
    program += "ldi vr_setup, 0x201800\nnop\nnop\nnop\nmov r0, vpm\nmov r1, vpm\n"
    program += "ldi vr_setup, 0x101900\nnop\nnop\nnop\nmov r2, vpm\n"
    program += "ldi vw_setup, 0x1a01\nmov vpm, r0\nmov vpm, r1\nmov vpm, r2"
    default, other = switched("vpm_read_extension", "sign", program)
    assert [hex(word) for word in default.vpm[1, :4]] == ["0x1", "0x7f", "0xff", "0x80"]
    assert [hex(word) for word in other.vpm[1, :4]] == ["0x1", "0x7f", "0xffffffff", "0xffffff80"]
    assert np.array_equal(other.vpm[2], other.vpm[1])
    assert [hex(word) for word in default.vpm[3, :2]] == ["0x7f01", "0x80ff"]
    assert [hex(word) for word in other.vpm[3, :2]] == ["0x7f01", "0xffff80ff"]


@pytest.mark.parametrize(
    ("mode", "y", "pitch", "rows"),
    [(0, 14, 1, (14, 15, 0, 1)), (2, 6, 2, (6, 7, 0, 1)), (4, 3, 4, (3, 0, 1, 2))],
)
def test_the_pitch_of_a_load_wraps(mode: int, y: int, pitch: int, rows: Any) -> None:
    """Four rows of one element; the pitch goes to the next VPM row."""
    setup = 1 << 31 | mode << 28 | 1 << 24 | 1 << 20 | 4 << 16 | pitch << 12 | y << 4
    data = np.array([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4], np.uint32)
    program = f"ldi vr_setup, {setup}\nldi vr_addr, {DATA}\nmov -, vr_wait"
    default, other = switched("vdr_pitch_carry", "low", program, data=data)
    assert default.vpm[y : y + 4, 0].tolist() == [1, 2, 3, 4]
    assert other.vpm[list(rows), 0].tolist() == [1, 2, 3, 4]


def test_a_stride_survives_the_program() -> None:
    setup = 2 << 30 | 2 << 23 | 1 << 16 | 1 << 14
    first = write_rows(1, 2) + f"ldi vw_setup, 0xc0000004\nldi vw_setup, {setup}" + END
    second = f"ldi vw_setup, {setup | 1 << 7}\nldi vw_addr, {DATA}\nmov -, vw_wait" + END
    found = []
    for choice in ("zero", "kept"):
        for engine in ENGINES:
            board = Board(engine, unknowns=DEFAULT_UNKNOWNS.with_(dma_setup_start=choice))
            board.start(first)
            board.finish()
            board.start(second)
            found.append(board.finish().memory[:3].tolist())
    assert found == [[100, 200, 0]] * 2 + [[100, 0, 200]] * 2


def test_all_setups_survive_the_program() -> None:
    setups = "ldi vr_setup, 0x80111000\nldi vr_setup, 0x90000008\n"
    setups += f"ldi vw_setup, {2 << 30 | 1 << 23 | 1 << 16 | 1 << 14}\nldi vw_setup, 0xc0000004"
    start = f"ldi vr_addr, {DATA}\nmov -, vr_wait\nldi vw_addr, {DATA + 4}\nmov -, vw_wait"
    for engine in ENGINES:
        board = Board(engine, unknowns=DEFAULT_UNKNOWNS.with_(dma_setup_start="kept"))
        board.memory.set_u32(DATA, 77)
        board.start(setups + END)
        board.finish()
        board.start(start + END)
        assert board.finish().memory[:3].tolist() == [77, 77, 0]


@pytest.mark.parametrize("mode", [0, 2])
def test_unaligned_transfers(mode: int) -> None:
    """A row is stored at an odd address, and the memory loaded from another one."""
    store = 2 << 30 | 1 << 23 | 4 << 16 | 1 << 14 | mode
    load = 1 << 31 | mode << 28 | 1 << 24 | 4 << 20 | 1 << 16 | 1 << 12 | 8 << 4
    program = write_rows(5, 1) + f"ldi vw_setup, {store | 5 << 7}\nldi vw_addr, {DATA + 3}\n"
    program += f"mov -, vw_wait\nldi vr_setup, {load}\nldi vr_addr, {DATA + 1}\nmov -, vr_wait"
    default, other = switched("dma_alignment", "rounded", program)
    size = 2 if mode else 4
    row = default.vpm[5].view(np.uint8)[: 4 * size]
    at = 2 if mode else 0
    assert np.array_equal(default.memory.view(np.uint8)[3 : 3 + 4 * size], row)
    assert np.array_equal(other.memory.view(np.uint8)[at : at + 4 * size], row)
    expected = other.memory.view(np.uint8)[: 4 * size]
    assert np.array_equal(other.vpm[8].view(np.uint8)[: 4 * size], expected)
