"""What instructions do: every form, the flags, the unknowns."""

import math
import struct

import pytest
from tests.soc.videocore.vpu.code import RTS, encode

from vc4lab.memory import GuestMemory
from vc4lab.soc.board_unknowns import Unknowns
from vc4lab.soc.videocore.vpu.core import RETURN, Endless, Refused
from vc4lab.soc.videocore.vpu.executor import Executor
from vc4lab.soc.videocore.vpu.floats import NAMES, REFUSED, pattern_of
from vc4lab.soc.videocore.vpu.forms import FORMS
from vc4lab.soc.videocore.vpu.instructions import decode
from vc4lab.soc.videocore.vpu.memory import Fault, VpuMemory
from vc4lab.soc.videocore.vpu.operations import OPERATIONS

CODE, DATA, STACK = 0x8000, 0x10000, 0x20000
NUMBER = {operation.name: n for n, operation in reversed(list(enumerate(OPERATIONS)))}
FLOATS = {"fadd": 0, "fsub": 1, "fmul": 2, "fdiv": 3, "fcmp": 4, "frsub": 6, "fmax": 7, "frcp": 8,
          "frsqrt": 9, "fnmul": 10, "fmin": 11, "fceil": 12, "ffloor": 13, "flog2": 14,
          "fexp2": 15}  # fmt: skip


class Devices:
    """A bus of one register that counts its reads."""

    base = 0x3F000000

    def __init__(self) -> None:
        self.reads = 0
        self.written: list[tuple[int, int]] = []

    def peek(self, offset: int) -> int:
        self.reads += 1
        return 0x44332200 + self.reads

    def poke(self, offset: int, value: int) -> None:
        self.written.append((offset, value))


class Vpu:
    """A VPU with 1 MiB of RAM."""

    def __init__(self, **unknowns: str) -> None:
        self.memory = GuestMemory(1 << 20)
        self.devices = Devices()
        self.unknowns = Unknowns(unknowns)
        self.times: list[int] = []

    def run(self, *code: bytes | str, budget: int = 10_000, returns: bool = True, **registers: int):
        """Execute code (bytes or hex) with r0… as given; the state at the end."""
        raw = b"".join(bytes.fromhex(one) if isinstance(one, str) else one for one in code)
        self.memory.write(CODE, raw + (bytes.fromhex(RTS) if returns else b""))
        bus_memory = VpuMemory(
            self.memory,
            self.devices,  # type: ignore[arg-type]
            self.unknowns["vpu_misaligned"] == "works",
        )
        executor = self.executor = Executor(bus_memory, self.unknowns, self.times.append)
        for name, value in registers.items():
            executor.state.registers[int(name[1:])] = value & 0xFFFFFFFF
        start = executor.state.registers[:6]
        executor.call(CODE, start, STACK, budget)
        return executor.state

    def r(self, number: int, *code: bytes | str, **registers: int) -> int:
        return self.run(*code, **registers).registers[number]


@pytest.fixture
def vpu():
    return Vpu()


def three(name: str, **fields: int) -> bytes:
    return encode("alu_three", p=NUMBER[name], **{"d": 0, "a": 1, **fields})


INTEGERS = [
    ("mov", 5, 7, 7), ("add", 0xFFFFFFFF, 2, 1), ("bic", 0xFF, 0x0F, 0xF0),
    ("mul", 0x10001, 0x10001, 0x20001), ("eor", 0xF0, 0xFF, 0x0F), ("sub", 1, 2, 0xFFFFFFFF),
    ("and", 0xFC, 0x3F, 0x3C), ("not", 0, 1, 0xFFFFFFFE), ("ror", 0x80000001, 33, 0xC0000000),
    ("rsub", 1, 3, 2), ("or", 5, 10, 15), ("bmask", 0xFFFF, 8, 0xFF), ("bmask", 0xFFFF, 32, 0),
    ("max", 0xFFFFFFFF, 1, 1), ("bitset", 0, 31, 0x80000000), ("min", 0xFFFFFFFF, 1, 0xFFFFFFFF),
    ("bitclear", 7, 1, 5), ("addscale", 1, 3, 7), ("bitflip", 5, 0, 4),
    ("signext", 0x1FF80, 7, 0xFFFFFF80), ("neg", 9, 1, 0xFFFFFFFF), ("lsr", 0x80000000, 31, 1),
    ("msb", 0, 0x00800000, 23), ("msb", 0, 0, 0xFFFFFFFF), ("shl", 1, 33, 2),
    ("brev", 0, 1, 0x80000000), ("asr", 0x80000000, 31, 0xFFFFFFFF), ("abs", 0, 0xFFFFFFFB, 5),
    ("mulhd.ss", 0xFFFFFFFF, 2, 0xFFFFFFFF), ("mulhd.su", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
    ("mulhd.us", 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF), ("mulhd.uu", 0xFFFFFFFF, 2, 1),
    ("div.ss", 0xFFFFFFF9, 2, 0xFFFFFFFD), ("div.su", 0xFFFFFFF9, 2, 0xFFFFFFFD),
    ("div.us", 7, 0xFFFFFFFE, 0xFFFFFFFD), ("div.uu", 0xFFFFFFF9, 2, 0x7FFFFFFC),
    ("adds", 0x7FFFFFFF, 1, 0x7FFFFFFF), ("subs", 0x80000000, 1, 0x80000000),
    ("count", 0, 0xF0F0F0F1, 17), ("subscale", 10, 3, 4),
]  # fmt: skip


@pytest.mark.parametrize(("name", "a", "b", "result"), INTEGERS)
def test_integer_operations(vpu, name, a, b, result):
    assert vpu.r(0, three(name, b=2), r1=a, r2=b) == result
    if name not in ("subscale", "count", "adds", "subs") and "." not in name:
        number = NUMBER[name]
        assert vpu.r(3, encode("alu_register", p=number, d=3, b=4), r3=a, r4=b) == result
        assert vpu.r(20, encode("alu_word", p=number, d=20, u=b), r20=a) == result
        if b < 32 and number % 2 == 0:
            assert vpu.r(3, encode("alu_small", q=number // 2, d=3, u=b), r3=a) == result
        if b < 0x8000:
            assert vpu.r(3, encode("alu_number", p=number, d=3, i=b), r3=a) == result
        if b < 32:
            assert vpu.r(0, three(name, i=b), r1=a) == result


def test_every_operation_has_a_test_or_is_refused():
    tested = {name for name, *_rest in INTEGERS} | {"cmp", "cmn", "btest"}
    assert {op.name for op in OPERATIONS if not op.refused} == tested


def test_scaled_operations_differ_by_their_shift(vpu):
    for number, operation in enumerate(OPERATIONS):
        if operation.shift:
            code = encode("alu_three", p=number, d=0, a=1, i=-1)
            sign = 1 if operation.name == "addscale" else -1
            assert vpu.r(0, code, r1=0x1000) == 0x1000 - sign * (1 << operation.shift)


def flags(state) -> str:
    return "".join(name for name in "zncv" if getattr(state.flags, name))


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("cmp", 5, 5, "z"), ("cmp", 4, 5, "nc"), ("cmp", 5, 4, ""),
        ("cmp", 0x80000000, 1, "v"), ("cmp", 0x7FFFFFFF, 0xFFFFFFFF, "ncv"),
        ("cmn", 1, 0xFFFFFFFF, "zc"), ("cmn", 0x7FFFFFFF, 1, "nv"), ("cmn", 1, 1, ""),
        ("btest", 0x10, 4, ""), ("btest", 0x10, 5, "zc"),
    ],
)  # fmt: skip
def test_flags(vpu, name, a, b, expected):
    state = vpu.run(three(name, b=2), r0=99, r1=a, r2=b)
    assert flags(state) == expected
    assert state.registers[0] == 99, "comparisons write nothing else"
    assert flags(vpu.run(three(name, b=2), three("add", i=1), r1=a, r2=b)) == expected


CONDITIONS = {
    0: lambda a, b: a == b, 1: lambda a, b: a != b, 2: lambda a, b: a % 2**32 < b % 2**32,
    3: lambda a, b: a % 2**32 >= b % 2**32, 4: lambda a, b: (a - b) % 2**32 >= 2**31,
    5: lambda a, b: (a - b) % 2**32 < 2**31, 6: lambda a, b: not -(2**31) <= a - b < 2**31,
    7: lambda a, b: -(2**31) <= a - b < 2**31, 8: lambda a, b: a % 2**32 > b % 2**32,
    9: lambda a, b: a % 2**32 <= b % 2**32, 10: lambda a, b: a >= b, 11: lambda a, b: a < b,
    12: lambda a, b: a > b, 13: lambda a, b: a <= b, 14: lambda a, b: True,
    15: lambda a, b: False,
}  # fmt: skip


@pytest.mark.parametrize("condition", range(16))
def test_conditions(vpu, condition):
    for a, b in [(1, 1), (1, 2), (2, 1), (-1, 1), (1, -1), (-(2**31), 1), (2**31 - 1, -1)]:
        expected = CONDITIONS[condition](a, b)
        compare = encode("alu_register", p=NUMBER["cmp"], d=1, b=2)
        skipped = encode("alu_small", q=NUMBER["add"] // 2, d=0, u=1)
        moved = three("mov", c=condition, i=1)
        assert vpu.r(0, compare, moved, r1=a, r2=b) == expected
        for size in (2, 4):
            branch = encode("branch", size, c=condition, o=size + 2)
            assert vpu.r(0, compare, branch, skipped, r1=a, r2=b) == (not expected)
        loop = encode("addcmpb", c=condition, d=1, i=0, b=2, o=6)
        assert vpu.r(0, loop, skipped, r1=a, r2=b) == (not expected)


def test_the_four_forms_of_addcmpb(vpu):
    skipped = encode("alu_small", q=1, d=0, u=1)
    for fields in ({"a": 3}, {"i": -2}):
        for right in ({"b": 4}, {"u": 63}):
            code = encode("addcmpb", c=0, d=1, o=6, **fields, **right)
            state = vpu.run(code, skipped, r1=65, r3=0xFFFFFFFE, r4=63)
            assert state.registers[:2] == [0, 63]
            assert flags(state) == "", "its comparison is its own"


def test_a_loop_backwards_sums_an_array(vpu):
    values = [3, 5, 7, 0xFFFFFFFF]
    vpu.memory.write(DATA, struct.pack("<4I", *values))
    state = vpu.run(
        encode("alu_small", q=0, d=2, u=0),
        encode("after", w=0, d=3, b=0),
        encode("alu_register", p=NUMBER["add"], d=2, b=3),
        encode("addcmpb", c=1, d=1, i=-1, u=0, o=-6),
        encode("alu_register", p=0, d=0, b=2),
        r0=DATA | 0xC0000000,
        r1=4,
    )
    assert state.registers[0] == sum(values) & 0xFFFFFFFF
    assert vpu.executor.executed == 1 + 3 * 4 + 2
    assert vpu.times == [15], "time is reported at the end"


LOADED = {0: 0x80FEDC8B, 2: 0xDC8B, 4: 0x8B, 6: 0xFFFFDC8B, 7: 0xFFFFFF8B}
STORED = {1: 0xDDCCBBAA, 3: 0x80FEBBAA, 5: 0x80FEDCAA}


@pytest.mark.parametrize("width", range(8))
def test_addressing(vpu, width):
    size = {0: 4, 1: 4, 2: 2, 3: 2, 6: 2}.get(width, 1)
    forms = [
        (encode("access", w=width, d=4, b=5), DATA, DATA),
        (encode("offset", 4, w=width, d=4, b=5, o=-8), DATA + 8, DATA + 8),
        (encode("offset", 6, w=width, d=4, b=5, o=0x8000), DATA - 0x8000, DATA - 0x8000),
        (encode("offset_if", w=width, d=4, a=5, u=4), DATA - 4, DATA - 4),
        (encode("before", w=width, d=4, b=5), DATA + size, DATA),
        (encode("after", w=width, d=4, b=5), DATA, DATA + size),
        (encode("indexed", w=width, d=4, a=5, b=3), DATA - 4 * size, DATA - 4 * size),
    ]
    for code, base, after in forms:
        vpu.memory.set_u32(DATA, 0x80FEDC8B)
        state = vpu.run(code, r5=base, r4=0xDDCCBBAA, r3=4)
        assert state.registers[5] == after
        assert state.registers[4] == LOADED.get(width, 0xDDCCBBAA)
        assert vpu.memory.u32(DATA) == STORED.get(width, 0x80FEDC8B)
        if "c" in _letters(code):
            never = vpu.run(_with_condition(code, 15), r5=base, r4=1, r3=4)
            assert never.registers[4:6] == [1, base]
    for number, register in ((0, "r24"), (3, "r0")):
        vpu.memory.set_u32(DATA, 0x80FEDC8B)
        code = encode("based", w=width, d=4, k=number, o=-4)
        state = vpu.run(code, **{register: DATA + 4, "r4": 0xDDCCBBAA})
        assert state.registers[4] == LOADED.get(width, 0xDDCCBBAA)
        assert vpu.memory.u32(DATA) == STORED.get(width, 0x80FEDC8B)


def _letters(code: bytes) -> set[str]:
    if len(code) != 4:
        return set()
    first, second = struct.unpack("<HH", code)
    form = decode(first << 16 | second, 4).form
    assert form is not None
    return {letter for letter, _parts, _bits in form.fields}


def _with_condition(code: bytes, condition: int) -> bytes:
    first, second = struct.unpack("<HH", code)
    return struct.pack("<HH", first, second & ~0x780 | condition << 7)


def test_pc_and_sp_as_bases(vpu):
    vpu.memory.set_u32(CODE + 0x40, 0x12345678)
    assert vpu.r(3, "0100", encode("based", w=0, d=3, k=2, o=0x3E)) == 0x12345678
    assert vpu.r(3, "0100", encode("near_pc", w=2, d=3, o=0x3E)) == 0x5678
    assert vpu.r(3, encode("lea_pc", 4, d=3, o=-4)) == CODE - 4
    assert vpu.r(3, encode("lea_pc", 6, d=3, o=0x12345)) == CODE + 0x12345
    state = vpu.run(
        encode("add_sp", o=-16),
        encode("store_sp", d=1, v=12),
        encode("load_sp", d=2, v=12),
        encode("based", w=0, d=3, k=1, o=12),
        encode("lea_sp", d=4, o=8),
        r1=77,
    )
    assert state.registers[2:5] == [77, 77, STACK - 8]
    assert state.registers[25] == STACK - 16
    near = [encode("store_near", d=1, b=0, v=60), encode("load_near", d=2, b=0, v=60)]
    assert vpu.r(2, *near, r0=DATA, r1=88) == 88


def test_pushed_registers_lie_downwards_and_lr_above(vpu):
    body = encode("alu_small", q=0, d=7, u=9)
    code = [encode("push_with_lr", k=1, n=2), body, encode("pop_with_pc", k=1, n=2)]
    state = vpu.run(*code, returns=False, r6=6, r7=7, r8=8)
    assert [*state.registers[6:9], state.registers[25]] == [6, 7, 8, STACK]
    assert [vpu.memory.u32(STACK - at) for at in (4, 8, 12, 16)] == [RETURN, 6, 7, 8]
    both = vpu.run(encode("push", k=2, n=7), encode("pop", k=0, n=7), **{
        f"r{16 + n}": 100 + n for n in range(8)
    })  # fmt: skip
    assert both.registers[:8] == [100 + n for n in range(8)]
    for push, pop in (("ef03", "6f03"), ("ff03", "7f03")):
        assert vpu.run(push, pop, returns=False).registers[25] == STACK


def test_calls(vpu):
    inc = encode("alu_small", q=1, d=0, u=1)
    save, back = "ef03", "6f03"
    for size, call in ((4, "call_relative"), (6, "call_relative")):
        code = [save, encode(call, size, o=size + 2), back, inc, RTS]
        assert vpu.r(0, *code, returns=False) == 1
    absolute = [save, encode("call_absolute", u=CODE + 10), back, inc, RTS]
    assert vpu.r(0, *absolute, returns=False) == 1
    register = [save, encode("call", d=3), back, inc, RTS]
    assert vpu.r(0, *register, returns=False, r3=CODE + 6) == 1
    for jump, fields in (("jump_absolute", {"u": CODE + 8}), ("jump_relative", {"o": 8})):
        assert vpu.r(0, encode(jump, **fields), inc, inc) == 1
    assert vpu.r(0, encode("jump", d=3), inc, inc, r3=CODE + 4) == 1


@pytest.mark.parametrize("index", range(3))
def test_switches(vpu, index):
    """The table lies after the instruction; distances are in halfwords from the table."""
    cases = [encode("alu_small", q=0, d=0, u=10 + n) + bytes.fromhex(RTS) for n in range(3)]
    byte = [encode("switch_byte", d=1), bytes([2, 4, 6, 0]), *cases]
    assert vpu.r(0, *byte, r1=index) == 10 + index
    half = [encode("switch_half", d=1), struct.pack("<4h", 4, 6, 8, 0), *cases]
    assert vpu.r(0, *half, r1=index) == 10 + index
    after = [encode("branch", 2, o=6), cases[2], encode("switch_byte", d=1), b"\xfd\xfd\xfd\xfd"]
    assert vpu.r(0, *after, r1=index) == 12


def fp(name: str, **fields: int) -> bytes:
    return encode("float", **{"f": FLOATS[name], "d": 0, "a": 1, **fields})


@pytest.mark.parametrize(
    ("name", "a", "b", "result"),
    [
        ("fadd", 1.5, 2.25, 3.75), ("fsub", 1.0, 2.5, -1.5), ("fmul", 3.0, -2.0, -6.0),
        ("fdiv", 1.0, 4.0, 0.25), ("fdiv", -1.0, 0.0, -math.inf), ("frsub", 1.0, 2.5, 1.5),
        ("fmax", 1.0, 2.0, 2.0), ("fmin", 1.0, 2.0, 1.0), ("frcp", 9.0, 4.0, 0.25),
        ("frsqrt", 9.0, 4.0, 0.5), ("fnmul", 3.0, 2.0, -6.0), ("fceil", 9.0, -1.5, -1.0),
        ("ffloor", 9.0, -1.5, -2.0), ("flog2", 9.0, 8.0, 3.0), ("fexp2", 9.0, -3.0, 0.125),
        ("fmul", 3e38, 3e38, math.inf), ("flog2", 0.0, 0.0, -math.inf),
        ("fexp2", 0.0, 1e9, math.inf),
    ],
)  # fmt: skip
def test_floats(vpu, name, a, b, result):
    state = vpu.run(fp(name, b=2), r1=pattern_of(a), r2=pattern_of(b))
    assert state.registers[0] == pattern_of(result)
    assert flags(state) == ""


def test_every_float_operation_is_tested():
    assert set(FLOATS) == {name for n, name in enumerate(NAMES) if n not in REFUSED}


def test_nan_and_negative_roots(vpu):
    for name, a, b in (("fdiv", 0.0, 0.0), ("frsqrt", 0.0, -1.0), ("flog2", 0.0, -1.0),
                       ("fexp2", 0.0, math.nan), ("ffloor", 0.0, math.nan)):  # fmt: skip
        pattern = vpu.r(0, fp(name, b=2), r1=pattern_of(a), r2=pattern_of(b))
        assert pattern & 0x7FFFFFFF > 0x7F800000, name


def test_float_comparisons(vpu):
    for a, b, expected in ((1.0, 2.0, "nc"), (2.0, 2.0, "z"), (3.0, 2.0, ""), (math.nan, 1.0, "")):
        assert flags(vpu.run(fp("fcmp", b=2), r1=pattern_of(a), r2=pattern_of(b))) == expected


def test_small_float_immediates(vpu):
    for bits, value in ((0b001100, 1.0), (0b011001, 10.0), (0b001000, 0.5), (0b110000, -2.0)):
        number = bits - 64 if bits & 32 else bits
        assert vpu.r(0, fp("fadd", i=number), r1=0) == pattern_of(value)
    assert Vpu(vpu_float_immediate="integer").r(0, fp("fadd", i=-3)) == pattern_of(-3.0)


def test_conversions(vpu):
    def convert(number: int, word: int, **right: int) -> int:
        return vpu.r(0, encode("convert", f=number, d=0, a=1, **right), r1=word, r2=1)

    assert convert(0, pattern_of(-2.75), i=0) == 0xFFFFFFFE
    assert convert(0, pattern_of(2.75), i=2) == 11
    assert convert(1, pattern_of(-2.75), i=0) == 0xFFFFFFFD
    assert convert(1, pattern_of(2.75), b=2) == 5
    assert convert(2, 0xFFFFFFFB, i=1) == pattern_of(-2.5)
    assert convert(3, 0xFFFFFFFF, i=0) == pattern_of(2.0**32)
    assert convert(0, pattern_of(math.nan), i=0) == 0
    assert convert(0, pattern_of(-1e30), i=0) == 0x80000000
    assert convert(0, pattern_of(math.inf), i=31) == 0x7FFFFFFF


def test_the_rest(vpu):
    assert vpu.r(3, encode("version", d=3)) == 0x04000104
    assert vpu.r(3, encode("read_p", d=3, u=10)) == 3
    assert vpu.r(3, encode("add_number", d=3, b=20, i=-5), r20=7) == 2
    assert vpu.r(3, encode("add_word", d=3, b=20, u=0xFFFFFFFB), r20=7) == 2
    with pytest.raises(Refused, match="p17"):
        vpu.run(encode("read_p", d=3, u=17))


def test_devices_are_words(vpu):
    state = vpu.run(
        encode("access", w=0, d=2, b=1),
        encode("access", w=4, d=3, b=1),
        encode("access", w=5, d=4, b=1),
        r1=0x7E003004,
        r4=0x1234,
    )
    assert state.registers[2:4] == [0x44332201, 2]
    assert vpu.devices.written == [(0x3004, 0x34)]
    assert vpu.times == [1, 1, 1, 1], "time passes before a device is used"


def test_code_may_change_itself(vpu):
    patched = encode("alu_small", q=0, d=0, u=1) * 2
    state = vpu.run(
        patched,
        encode("access", w=3, d=2, b=1),
        encode("addcmpb", c=0, d=3, i=1, u=1, o=-6),
        r1=CODE + 0x40000000,
        r2=int.from_bytes(encode("alu_small", q=0, d=0, u=9), "little"),
        r3=0,
    )
    assert state.registers[0] == 1, "the second of the two was not written"
    loop = [patched[:2], encode("access", w=3, d=2, b=1),
            encode("addcmpb", c=0, d=3, i=1, u=1, o=-4)]  # fmt: skip
    new = int.from_bytes(encode("alu_small", q=0, d=0, u=9), "little")
    assert vpu.r(0, *loop, r1=CODE + 0x40000000, r2=new) == 9


def test_faults(vpu):
    divide = three("div.uu", i=0)
    for code, registers, text in (
        (divide, {"r1": 1}, "division by zero"),
        (encode("access", w=0, d=2, b=1), {"r1": 2}, "misaligned load"),
        (encode("access", w=1, d=2, b=1), {"r1": 0x100000}, "empty address"),
        (encode("jump", d=1), {"r1": CODE + 5}, "odd address"),
        (encode("jump", d=1), {"r1": 0x7E000000}, "no RAM"),
    ):
        with pytest.raises(Fault, match=text):
            vpu.run(code, **registers)
    with pytest.raises(Refused, match=r"0xf000 at 0x00008000 is a 48-bit vector instruction"):
        vpu.run("00f0000000000000")
    with pytest.raises(Endless, match="10,000"):
        vpu.run(encode("branch", 2, o=0))


def test_unknowns_can_be_switched():
    assert Vpu(vpu_signext="width").r(0, three("signext", i=8), r1=0x80) == 0xFFFFFF80
    assert Vpu(vpu_msb="leading_zeros").r(0, three("msb", b=2), r2=0x00800000) == 8
    shifted = Vpu(vpu_brev="shifted")
    assert shifted.r(0, three("brev", b=2), r1=1, r2=31) == 1
    assert shifted.r(3, encode("alu_register", p=29, d=3, b=4), r4=1) == 0x80000000
    state = Vpu(vpu_saturation="flags").run(three("adds", b=2), r1=0x7FFFFFFF, r2=1)
    assert (state.registers[0], flags(state)) == (0x80000000, "nv")
    state = Vpu(vpu_btest_carry="kept").run(three("btest", i=3), r1=0)
    assert flags(state) == "z"
    state = Vpu(vpu_float_flags="result").run(fp("fsub", b=2), r2=pattern_of(1.0))
    assert flags(state) == "n"
    ignored = Vpu(vpu_float_condition="ignored")
    assert ignored.r(0, fp("fadd", c=15, i=12)) == pattern_of(1.0)
    assert Vpu().r(0, fp("fadd", c=15, i=12)) == 0
    code = encode("convert", f=0, d=0, a=1, i=0)
    assert Vpu(vpu_float_to_int="wrap").r(0, code, r1=pattern_of(2.0**32 + 1024)) == 1024
    assert Vpu(vpu_divide_by_zero="zero").r(0, three("div.ss", i=0), r0=5, r1=9) == 0
    works = Vpu(vpu_misaligned="works")
    works.memory.set_u32(DATA + 1, 0x01020304)
    assert works.r(2, encode("access", w=0, d=2, b=1), r1=DATA + 1) == 0x01020304


def test_every_kind_of_form_is_done_or_refused():
    for form in FORMS:
        assert hasattr(Executor, "_do_" + form.kind) != bool(form.refused), form.text
