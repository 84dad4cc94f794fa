"""The reference arithmetic against exact rationals, the SFU vectors, the fast path's shortcuts."""

import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.qpu_runner import Runner

from vc4lab.qpu.isa import sfu
from vc4lab.qpu.isa.encoding import SMALL_IMMEDIATES
from vc4lab.qpu.isa.operations import AddOp, MulOp
from vc4lab.qpu.isa.qpu_unknowns import DEFAULTS
from vc4lab.qpu.jit.simd_ops import integer_low
from vc4lab.qpu.run.numpy_ops import NumpyOps
from vc4lab.simd import Function, Target, build, f32x16, load, ptr, store, targets

sys.path.insert(0, str(Path(__file__).parent))
from qpu_programs import END, SPECIAL, alu, ldi


def value(bits: int) -> Fraction:
    """The number of finite float bits; denormals count as zero."""
    exponent = bits >> 23 & 255
    if not exponent:
        return Fraction(0)
    magnitude = Fraction(bits & 0x7FFFFF | 0x800000) * Fraction(2) ** (exponent - 150)
    return -magnitude if bits >> 31 else magnitude


def truncated(number: Fraction) -> int:
    """Float bits of a number, toward zero; +0 below 2^-126, infinite from 2^128 on."""
    sign = 0x80000000 if number < 0 else 0
    number = abs(number)
    if number >= Fraction(2) ** 128:
        return sign | 0x7F800000
    if number < Fraction(1, 2**126):
        return 0
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    if Fraction(2) ** exponent > number:
        exponent -= 1
    mantissa = int(number / Fraction(2) ** exponent * (1 << 23))
    return sign | (exponent + 127) << 23 | mantissa & 0x7FFFFF


def finite_floats(count: int, seed: int) -> Any:
    """Random finite floats with many close exponents and mantissas at the edges."""
    rng = random.Random(seed)
    words = []
    for _ in range(count):
        exponent = rng.choice([rng.randrange(1, 255), rng.randrange(120, 134), 1, 254])
        mantissa = rng.choice([0, 1, 0x7FFFFF, rng.getrandbits(23), 1 << rng.randrange(23)])
        words.append(rng.getrandbits(1) << 31 | exponent << 23 | mantissa)
    return np.array(words, np.uint32)


@pytest.mark.parametrize("engine", ["interpreter", "exact", "jit"])
def test_sums_and_products_truncate(engine: str) -> None:
    runner = Runner(
        [
            alu(op_add=1, op_mul=1, cond_add=1, cond_mul=1, raddr_a=0, raddr_b=0,
                add_a=6, add_b=7, mul_a=6, mul_b=7, waddr_add=32, waddr_mul=33),
            alu(op_add=2, cond_add=1, raddr_a=0, raddr_b=0, add_a=6, add_b=7, waddr_add=34),
            *END,
        ],
        engine,
    )  # fmt: skip
    a, b = finite_floats(800, 1), finite_floats(800, 2)
    for start in range(0, 800, 16):
        x, y = a[start : start + 16], b[start : start + 16]
        got = runner.run({("a", 0): x, ("b", 0): y}).registers
        for lane in range(16):
            p, q = value(int(x[lane])), value(int(y[lane]))
            pair = f"{x[lane]:#x} {y[lane]:#x}"
            assert got["r", 0][lane] == truncated(p + q), f"fadd {pair}"
            assert got["r", 1][lane] == truncated(p * q), f"fmul {pair}"
            assert got["r", 2][lane] == truncated(p - q), f"fsub {pair}"


FTOI = [alu(op_add=7, cond_add=1, raddr_a=0, add_a=6, add_b=6, waddr_add=33)]
DRIVERS_SCALE = 0x4F7FFFFE
"""4294966784.0: Mesa's integer division converts reciprocals times this."""


@pytest.mark.parametrize("engine", ["interpreter", "exact", "jit"])
@pytest.mark.parametrize("target", targets(), ids=lambda target: target.level)
def test_ftoi_keeps_the_low_32_bits(engine: str, target: Target) -> None:
    """Also of numbers beyond 2^31; Inf and NaN give 0. As a constant, too: nothing may fold."""
    runner = Runner(FTOI + END, engine, target=target)
    edges = [s << 31 | e << 23 | m for s in (0, 1) for e in (0, 126, 127, *range(149, 190), 253)
             for m in (0, 1, 0x7FFFFF, 0x7FFFFE, 0x400000)]  # fmt: skip
    special = [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F7FFFFF, 0xFF7FFFFF]
    numbers = np.array([*edges, *special, DRIVERS_SCALE, DRIVERS_SCALE | 1 << 31], np.uint32)
    numbers = np.concatenate([numbers, finite_floats(512, 3)])
    numbers = numbers[: len(numbers) // 16 * 16]
    for start in range(0, len(numbers), 16):
        x = numbers[start : start + 16]
        got = runner.run({("a", 0): x}).registers["r", 1]
        for lane in range(16):
            finite = int(x[lane]) >> 23 & 255 != 255
            expected = int(value(int(x[lane]))) & 0xFFFFFFFF if finite else 0
            assert got[lane] == expected, f"ftoi {x[lane]:#x}"


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.level)
@pytest.mark.parametrize("straight", [False, True])
def test_both_ways_to_convert(straight: bool, target: Target) -> None:
    """With a branch, and without one for batches that are mixed."""

    def body(place: Any) -> None:
        result = integer_low(load(f32x16, place), straight)
        store(place, result)

    native = build("ftoi", {"run": Function((ptr,), None, body)}, target=target)["run"]
    words = np.concatenate([finite_floats(800, 4), [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF]])
    words = words[-800:].astype(np.uint32)
    place = np.zeros(32, np.uint32)
    lanes = place[-place.ctypes.data % 64 // 4 :][:16]
    for start in range(0, 800, 16):
        lanes[:] = words[start : start + 16]
        expected = NumpyOps().ftoi_low(lanes.copy())
        native(lanes.ctypes.data)
        assert (lanes == expected).all()


@pytest.mark.parametrize("engine", ["interpreter", "exact", "jit"])
def test_ftoi_of_a_constant(engine: str) -> None:
    """The compiler knows the number; it must not know another integer."""
    for bits, expected in ((DRIVERS_SCALE, 0xFFFFFE00), (0xCF000000, 0x80000000), (0xFF800000, 0)):
        words = [ldi(bits, waddr_add=32), alu(op_add=7, cond_add=1, waddr_add=33)]
        got = Runner(words + END, engine).run().registers["r", 1]
        assert (got == expected).all()


def test_square_is_what_the_chip_has() -> None:
    q = np.arange(64, dtype=np.uint32)
    assert sfu.square(NumpyOps(64), q).tolist() == list(sfu.SQUARE)


VECTORS = """
3F800000 3F7FFC00 3F7FFB00 00000000 40000100
40000000 3EFFFC00 3F350100 3F800000 40800100
40490FDB 3EA2FA00 3F107000 3FD36200 410D3400
402DF854 3EBC5B00 3F1B4500 3FB8A800 40D29800
42C80000 3C23D600 3DCCCD00 40D49A40 71800100
3F000000 3FFFFC00 3FB50100 BF7FFF00 3FB50600
BF800000 BF7FFC00 3F7FFB00 00000000 3EFFFE00
3E800000 407FFC00 3FFFFB00 BFFFFF80 3F983900
00000000 7F800000 7F800000 FF800000 3F800100
7F800000 00000000 00000000 7F800000 7F800000
"""


@pytest.mark.parametrize("name", ["RECIP", "RSQRT", "LOG2", "EXP2"])
def test_sfu_fields_are_never_exceeded(name: str) -> None:
    """The unit cuts slope, curve and sum to their fields; `interpolate` has no need to."""
    table, rising = getattr(sfu, name), name == "EXP2"
    m = np.arange(1 << 15, dtype=np.int64)
    c0, c1, c2 = (np.array(column)[m >> 11] for column in table)
    slope = (c1 * (m & 0x7FF) >> 11) & 0xFFF
    if rising:
        slope = ~slope & 0x7FFF
    curve = (c2 * np.array(list(sfu.SQUARE))[(m >> 5) & 63] >> 5) & 0x7F
    expected = ((c0 - slope - curve) & 0x7FFF) << 8
    found = sfu.interpolate(NumpyOps(1 << 15), table, m.astype(np.uint32), rising)
    assert np.array_equal(found, expected)


def test_sfu_vectors_of_the_reference() -> None:
    rows = np.array([[int(w, 16) for w in r.split()] for r in VECTORS.split("\n") if r], np.uint32)
    ops = NumpyOps(len(rows))
    settings = {**DEFAULTS, "recip_one": "model"}
    for column, function in enumerate((sfu.recip, sfu.rsqrt, sfu.log2, sfu.exp2), 1):
        result = function(ops, np.ascontiguousarray(rows[:, 0]), settings)
        assert [f"{v:08X}" for v in result] == [f"{v:08X}" for v in rows[:, column]]


def test_recip_of_one_is_exact_by_default() -> None:
    x = np.array([0x3F800000, 0xBF800000], np.uint32)
    assert sfu.recip(NumpyOps(2), x).tolist() == x.tolist()


def test_sfu_accuracy() -> None:
    x = np.geomspace(2.0**-60, 2.0**60, 4000).astype(np.float32)
    ops, bits = NumpyOps(4000), x.view(np.uint32)

    def error(function: Any, expected: Any) -> float:
        got = function(ops, bits).view(np.float32).astype(np.float64)
        return float(np.max(np.abs(got / expected - 1)))

    wide = x.astype(np.float64)
    assert error(sfu.recip, 1 / wide) < 1.0e-4
    assert error(sfu.rsqrt, wide**-0.5) < 1.1e-4
    log = sfu.log2(ops, bits).view(np.float32).astype(np.float64)
    assert np.max(np.abs(log - np.log2(wide))) < 1.7e-4
    exponents = np.linspace(-100, 100, 4000).astype(np.float32)
    power = sfu.exp2(ops, exponents.view(np.uint32)).view(np.float32).astype(np.float64)
    assert np.max(np.abs(power / np.exp2(exponents.astype(np.float64)) - 1)) < 1.0e-4


@pytest.mark.parametrize("engine", ["exact", "jit"])
def test_sfu_in_the_jit(engine: str) -> None:
    words = []
    for function in range(4):
        words.append(alu(op_add=21, cond_add=1, raddr_a=0, add_a=6, add_b=6, waddr_add=52 + function))
        words += [alu(), alu()]
        words.append(alu(op_add=21, cond_add=1, add_a=4, add_b=4, waddr_add=32 + function))
    reference, native = Runner(words + END), Runner(words + END, engine)
    rng = np.random.default_rng(3)
    special = np.array([0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000,
                        0xBF800000, 0x7E800000, 0x7E7FFFFF, 0x00800000, 0x42FFFFFF, 0xC2FC0000,
                        0x807FFFFF, 0x43000000, 0xC3000000], np.uint32)  # fmt: skip
    samples = [special, *rng.integers(0, 1 << 32, (40, 16), np.uint32)]
    for x in samples:
        assert reference.run({("a", 0): x}).differences(native.run({("a", 0): x})) == []


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.level)
@pytest.mark.parametrize("rounding", ["nearest", "truncate"])
def test_bytes_become_floats_and_colours_natively(target: Target, rounding: str) -> None:
    """Unpack 8 bit to float and the colour pack: the fast path's arithmetic equals the tables'."""
    words = [
        alu(op_add=1, cond_add=1, raddr_a=0, unpack=4, add_a=6, add_b=0, waddr_add=33),
        alu(op_mul=4, cond_mul=1, mul_a=1, mul_b=1, waddr_mul=34, pm=1, pack=3),
        # a float result times 1.0 is known to be clean: native colour conversion
        alu(op_mul=1, cond_mul=1, raddr_a=1, raddr_b=32, signal=13, mul_a=6, mul_b=7, waddr_mul=35),
        alu(op_mul=4, cond_mul=1, mul_a=3, mul_b=3, waddr_mul=32, pm=1, pack=3),
    ]
    settings = {**DEFAULTS, "colour_rounding": rounding}
    reference = Runner(words + END, settings=settings)
    native = Runner(words + END, "jit", settings=settings, target=target)
    rng = np.random.default_rng(5)
    edges = (np.arange(0, 16) + 0.5) / 255
    for step in range(48):
        base = (np.arange(16) + 16 * (step % 16)).astype(np.uint32)
        x = (edges + 16 * (step % 16) / 255).astype(np.float32)
        x = np.nextafter(x, np.float32([0, 2, 0.5][step // 16])).astype(np.float32)
        if step % 16 == 15:
            x = rng.uniform(-3, 3, 16).astype(np.float32)
        given = {("a", 0): base, ("a", 1): x.view(np.uint32)}
        first, second = reference.run(given), native.run(given)
        assert first.differences(second) == []
        assert not second.exact
        lanes = base * np.uint32(0x01010101)
        returned = first.registers["r", 2].tolist() == lanes.tolist()
        assert returned or rounding == "truncate", "byte -> float -> byte"


@pytest.mark.parametrize("rounding", ["nearest", "truncate"])
def test_constant_colours_are_packed_while_compiling(rounding: str) -> None:
    """Small immediates into colour bytes: all floats, and integers as floats."""
    settings = {**DEFAULTS, "colour_rounding": rounding}
    immediates = [*range(48)]
    for first in range(0, len(immediates), 3):
        words = [
            alu(op_mul=4, cond_mul=1, mul_a=7, mul_b=7, raddr_b=immediate, signal=13,
                waddr_mul=32 + number, pm=1, pack=3 + number)
            for number, immediate in enumerate(immediates[first : first + 3])
        ]  # fmt: skip
        reference = Runner(words + END, settings=settings).run({})
        native = Runner(words + END, "jit", settings=settings).run({})
        assert reference.differences(native) == []


@pytest.mark.parametrize("op", [AddOp.FMIN, AddOp.FMAX, AddOp.FMINABS, AddOp.FMAXABS])
@pytest.mark.parametrize("constant", [0, 15, 16, 32, 40], ids=lambda at: hex(SMALL_IMMEDIATES[at]))
def test_comparisons_with_constants_natively(op: AddOp, constant: int) -> None:
    """The fast path compares raw bits where a constant allows it: zeros of both signs, NaNs."""
    numbers = np.array([*SPECIAL, 0x3F7FFFFF, *(0xBF7FFFFF, 15, 16, 0xFFFFFFF0)], np.uint32)
    for first, second in ((6, 7), (7, 6)):
        words = [
            alu(op_add=op, cond_add=1, sf=1, raddr_a=0, raddr_b=constant, signal=13,
                add_a=first, add_b=second, waddr_add=32),
            *END,
        ]  # fmt: skip
        reference, native = Runner(words), Runner(words, "jit")
        for start in range(0, len(numbers), 5):
            given = {("a", 0): np.resize(numbers[start : start + 5], 16)}
            assert reference.run(given).differences(native.run(given)) == [], (first, start)


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.level)
def test_all_products_of_bytes_natively(target: Target) -> None:
    """v8muld of every two bytes, and a byte copied to all four: of r4's unpack, of a pack."""
    words = [
        alu(op_mul=MulOp.V8MULD, cond_mul=1, raddr_a=0, raddr_b=0, mul_a=6, mul_b=7, waddr_mul=33),
        alu(op_add=AddOp.OR, cond_add=1, raddr_a=0, unpack=3, add_a=6, add_b=6, waddr_add=34),
        alu(op_add=AddOp.OR, cond_add=1, raddr_b=0, add_a=7, add_b=7, waddr_add=1, pack=3),
        *END,
    ]
    reference, native = Runner(words), Runner(words, "jit", target=target)
    ramp = np.arange(64, dtype=np.uint8)
    for step in range(1024):
        a, b = ramp + np.uint8(64 * (step & 3)), np.full(64, step >> 2, np.uint8)
        given = {("a", 0): a.view(np.uint32), ("b", 0): b.view(np.uint32)}
        found = native.run(given).registers
        products = (a.astype(np.uint32) * b + 127) // 255
        assert found["r", 1].view(np.uint8).tolist() == products.tolist()
        assert found["r", 2].view(np.uint8).tolist() == np.repeat(a[3::4], 4).tolist()
        assert found["a", 1].view(np.uint8).tolist() == np.repeat(b[::4], 4).tolist()
        if step % 64 == 0:
            assert reference.run(given).differences(native.run(given)) == []
