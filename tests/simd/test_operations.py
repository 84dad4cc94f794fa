"""Every operation against numpy, on every instruction set."""

import math

import numpy as np
import pytest

from vc4lab.simd import (
    abs_,
    all_,
    any_,
    bswap_,
    ceil_,
    clz_,
    compress,
    const,
    f32,
    f32x16,
    f64,
    fabs_,
    floor_,
    fmax_,
    fmin_,
    fused_,
    has_fused,
    i1,
    i8,
    i8x16,
    i16,
    i16x16,
    i32,
    i32x16,
    i64,
    int_or_least,
    iota,
    is_nan,
    lookup16,
    mask16,
    mask_bits,
    mask_from_bits,
    max_,
    min_,
    nearest_,
    opaque,
    permute,
    permute_two,
    popcount_,
    reduce_add,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_umax,
    rotate_lanes,
    scale_round,
    select,
    shuffle,
    splat,
    sqrt_,
    uadd_sat,
    umax,
    umin,
    usub_sat,
    vec,
)

A = np.array([0, 1, -1, 2**31 - 1, -(2**31), 7, -7, 100, 12345, -54321, 255, 256, 65535, 65536, 3, 31])
B = np.array([1, 2, -1, 1, -1, 3, 3, -9, 54321, 77, -(2**31), 0, 0, 65537, 2**31 - 1, 5])
X = np.array(
    [0.0, -0.0, 1.0, -1.5, 0.75, 1e30, -1e30, 3e9, -3e9, 2147483520.0, 1e-40, -1e-40,
     math.inf, -math.inf, math.nan, 8388609.0], "f4")  # fmt: skip
Y = np.array([1.0, 1.0, 0.3, 0.1, 3.0, 1e30, 2.0, 7.0, 0.1, 1e-30, 1.0, 3.0, 1.0, math.inf, 1.0, -2.5], "f4")


def wrap(values: object, bits: int = 32) -> np.ndarray:
    """Python integers to signed numbers of so many bits."""
    return np.array([((int(v) + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1) for v in values])


def u(values: object, bits: int = 32) -> list[int]:
    return [int(v) % (1 << bits) for v in values]


def saturated(values: np.ndarray, bits: int) -> list[int]:
    limit = 1 << bits - 1
    whole = [0 if math.isnan(v) else min(max(v, -1e30), 1e30) for v in values.tolist()]
    return [max(-limit, min(limit - 1, int(v))) for v in whole]


def test_integer_arithmetic(apply):
    got = apply(
        [i32x16, i32x16],
        lambda a, b: [
            a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, -a, a << (b & 31), a >> (b & 31),
            a.shr(b & 31), a + 5, 5 - a, 3 * a, a // 7, a % 7, a.udiv(7), a.urem(7),
        ],
        A, B,
    )  # fmt: skip
    a, b, sh = [int(v) for v in A], [int(v) for v in B], [int(v) & 31 for v in B]
    div = [int(abs(x) // 7) * (1 if x >= 0 else -1) for x in a]
    want = [
        [x + y for x, y in zip(a, b, strict=True)], [x - y for x, y in zip(a, b, strict=True)],
        [x * y for x, y in zip(a, b, strict=True)], [x & y for x, y in zip(a, b, strict=True)],
        [x | y for x, y in zip(a, b, strict=True)], [x ^ y for x, y in zip(a, b, strict=True)],
        [~x for x in a], [-x for x in a], [x << s for x, s in zip(a, sh, strict=True)],
        [x >> s for x, s in zip(a, sh, strict=True)],
        [x >> s for x, s in zip(u(a), sh, strict=True)],
        [x + 5 for x in a], [5 - x for x in a], [3 * x for x in a], div,
        [x - 7 * d for x, d in zip(a, div, strict=True)],
        [x // 7 for x in u(a)], [x % 7 for x in u(a)],
    ]  # fmt: skip
    for index, (g, w) in enumerate(zip(got, want, strict=True)):
        assert list(g) == list(wrap(w)), index


def test_division_never_traps(apply):
    quotient, remainder, uquotient = apply([i32x16, i32x16], lambda a, b: [a // b, a % b, a.udiv(b)], A, B)
    for a, b, q, r, uq in zip(A, B, quotient, remainder, uquotient, strict=True):
        a, b = int(a), int(b) or 1
        want = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        assert int(q) == wrap([want])[0]
        assert int(r) == wrap([a - want * b])[0]
        assert int(uq) == wrap([u([a])[0] // u([b])[0]])[0]


def test_comparisons(apply):
    got = apply(
        [i32x16, i32x16],
        lambda a, b: [
            a == b, a != b, a < b, a <= b, a > b, a >= b, a.ult(b), a.ule(b), a.ugt(b), a.uge(b)
        ],
        A, B,
    )  # fmt: skip
    ua, ub = np.array(u(A)), np.array(u(B))
    want = [A == B, A != B, A < B, A <= B, A > B, A >= B, ua < ub, ua <= ub, ua > ub, ua >= ub]
    for g, w in zip(got, want, strict=True):
        assert list(g != 0) == list(w)
    got = apply(
        [f32x16, f32x16],
        lambda a, b: [a == b, a != b, a < b, a <= b, a > b, a >= b, is_nan(a)],
        X, Y, mode="default",
    )  # fmt: skip
    want = [X == Y, X != Y, X < Y, X <= Y, X > Y, X >= Y, np.isnan(X)]
    for g, w in zip(got, want, strict=True):
        assert list(g != 0) == list(w)


def test_float_arithmetic_in_ieee_mode(apply):
    got = apply(
        [f32x16, f32x16],
        lambda a, b: [a + b, a - b, a * b, a / b, -a, fabs_(a), sqrt_(fabs_(a)), a * 2.0, 1 - a],
        X, Y, mode="default",
    )  # fmt: skip
    with np.errstate(all="ignore"):
        want = [X + Y, X - Y, X * Y, X / Y, -X, abs(X), np.sqrt(abs(X)), X * np.float32(2),
                np.float32(1) - X]  # fmt: skip
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
        same_zero = np.signbit(g) == np.signbit(w)
        assert np.all(same_zero | np.isnan(w))


def test_conversions(apply):
    got = apply(
        [f32x16, i32x16],
        lambda x, a: [
            x.to_int(i32), a.to_float(f32), a.to_float_unsigned(f32), a.trunc(i8), a.trunc(i16),
            a.trunc(i8).sext(i32), a.trunc(i8).zext(i32), a.sext(i64), x.fpext(f64),
            x.bitcast(i32), a.bitcast(f32).bitcast(i32), (a < 0).sext(i32), (a < 0).zext(i32),
            x.fpext(f64).fptrunc(f32), x.to_int(i64),
        ],
        X, A, mode="default",
    )  # fmt: skip
    clamped, clamped64 = saturated(X, 32), saturated(X, 64)
    want = [
        clamped, A.astype("f4"), np.array(u(A), "u4").astype("f4"), wrap(A, 8), wrap(A, 16),
        wrap(A, 8), u(A, 8), A, X.astype("f8"), X.view("i4"), A, -(A < 0).astype("i4"), A < 0, X,
        clamped64,
    ]  # fmt: skip
    for index, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(g, w, err_msg=str(index))


def test_integer_functions(apply):
    got = apply(
        [i32x16, i32x16],
        lambda a, b: [
            min_(a, b), max_(a, b), umin(a, b), umax(a, b), uadd_sat(a, b), usub_sat(a, b),
            abs_(a), clz_(a), popcount_(a), bswap_(a),
        ],
        A, B,
    )  # fmt: skip
    ua, ub = np.array(u(A)), np.array(u(B))
    want = [
        np.minimum(A, B), np.maximum(A, B), wrap(np.minimum(ua, ub)), wrap(np.maximum(ua, ub)),
        wrap(np.minimum(ua + ub, 2**32 - 1)), wrap(np.maximum(ua - ub, 0)), wrap(abs(A)),
        [32 - int(v).bit_length() for v in ua], [int(v).bit_count() for v in ua],
        wrap(int.from_bytes(int(v).to_bytes(4, "little"), "big") for v in ua),
    ]  # fmt: skip
    for g, w in zip(got, want, strict=True):
        assert list(g) == list(w)
    small = apply(
        [i8x16, i8x16], lambda a, b: [uadd_sat(a, b), a * b, a.shr(1), min_(a, b)], A % 256, B % 256
    )
    assert list(small[0]) == list(wrap(np.minimum(A % 256 + B % 256, 255), 8))
    assert list(small[1]) == list(wrap((A % 256) * (B % 256), 8))
    assert list(small[2]) == list(A % 256 >> 1)


@pytest.mark.parametrize("mode", ["default", "qpu"])
def test_rounding_to_integers(apply, mode):
    values = np.array(
        [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 8388607.5, -8388607.5, 1e10, -1e10, math.inf,
         -math.inf, 0.99999994, -0.99999994], "f4")  # fmt: skip
    floor, ceil, nearest = apply([f32x16], lambda x: [floor_(x), ceil_(x), nearest_(x)], values, mode=mode)
    for g, w in ((floor, np.floor(values)), (ceil, np.ceil(values)), (nearest, np.rint(values))):
        assert g.tobytes() == w.tobytes()


@pytest.mark.parametrize("mode", ["default", "qpu"])
def test_integers_of_numbers_that_do_not_fit(apply, mode):
    least = -(2**31)
    values = {
        0.0: 0, -0.75: 0, 1.99: 1, -1.99: -1, 16777215.0: 16777215, 2147483520.0: 2147483520,
        2.0**31: least, -(2.0**31): least, 3e9: least, -3e9: least, 1e30: least, -1e30: least,
        math.inf: least, -math.inf: least, math.nan: least, 1e-40: 0,
    }  # fmt: skip
    (got,) = apply([f32x16], lambda x: [int_or_least(x)], np.array([*values], "f4"), mode=mode)
    assert list(got) == list(values.values())


def test_min_max_pick_the_second_for_nan(apply):
    low, high = apply([f32x16, f32x16], lambda a, b: [fmin_(a, b), fmax_(a, b)], X, Y, mode="default")
    assert low.tobytes() == np.where(X < Y, X, Y).tobytes()
    assert high.tobytes() == np.where(X > Y, X, Y).tobytes()


def test_lanes(apply):
    order = [3, 3, 0, 15, 14, 1, 2, 9, 8, 7, 6, 5, 4, 10, 11, 12]
    index = np.array([5, 0, 15, 15, 3, 2, 1, 8, 9, 31, 16, -1, 7, 6, 4, 100])
    pixels = [10 * i for i in range(16)]

    def body(a, x, i):
        n = i[0]
        return [
            shuffle(a, order), shuffle(a, x.bitcast(i32), [0, 16, 1, 17] * 4), permute(a, i),
            permute(x, i), permute(a.trunc(i8), i), permute(a < 0, i), lookup16(i & 15, pixels),
            rotate_lanes(a, 5), rotate_lanes(a, n), rotate_lanes(a, -1), splat(a[3]), splat(a[n]),
            a.insert(2, 99), a.insert(n, 98), iota(), shuffle(a, [1, 2, 3, 4]),
            permute(a.trunc(i16), i), rotate_lanes(a, 16),
        ]  # fmt: skip

    got = apply([i32x16, f32x16, i32x16], body, A, X, index)
    at2, at5 = A.copy(), A.copy()
    at2[2], at5[5] = 99, 98
    both = np.concatenate([A, X.view("i4")])
    want = [
        A[order], both[[0, 16, 1, 17] * 4], A[index % 16], X[index % 16], wrap(A[index % 16], 8),
        A[index % 16] < 0, np.array(pixels)[index % 16], np.roll(A, 5), np.roll(A, 5),
        np.roll(A, -1), [A[3]] * 16, [A[5]] * 16, at2, at5, range(16), A[1:5],
        wrap(A[index % 16], 16), A,
    ]  # fmt: skip
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(g, np.array(w), err_msg=str(number))


def test_masks_and_reductions(apply):
    def body(a, x):
        bits = mask_bits(a < 0)
        return [
            bits, mask_bits(mask_from_bits(bits)), any_(a == 7), all_(a == 7), all_(a <= 2**31 - 1),
            any_(a == 8), reduce_add(a), reduce_min(a), reduce_max(a), reduce_umax(a), reduce_or(a),
            select(any_(a == 7), a, 0), select(a < 0, 1, a), select(a < 0, 1.0, 2.0),
            mask_bits((a < 0) & ~(a == -1)), mask_bits(const(mask16, [True, False] * 8)),
        ]  # fmt: skip

    got = [g.tolist() for g in apply([i32x16, f32x16], body, A, X)]
    bits = sum(1 << i for i in range(16) if A[i] < 0)
    minus = sum(1 << i for i in range(16) if A[i] < -1)
    orred = 0
    for v in A:
        orred |= int(v)
    want = [
        [bits], [bits], [1], [0], [1], [0], [wrap([A.sum()])[0]], [A.min()], [A.max()], [-1],
        [orred],
        A.tolist(), np.where(A < 0, 1, A).tolist(), np.where(A < 0, 1.0, 2.0).tolist(), [minus],
        [0x5555],
    ]  # fmt: skip
    assert got == [list(w) for w in want]


def test_float_reductions_have_a_fixed_order(apply):
    values = (np.arange(16) * 1.1 + 1e6).astype("f4")
    total, low, high = apply(
        [f32x16], lambda x: [reduce_add(x), reduce_min(x), reduce_max(x)], values, mode="default"
    )
    want = values
    while len(want) > 1:
        want = want[: len(want) // 2] + want[len(want) // 2 :]
    assert (total[0], low[0], high[0]) == (want[0], values.min(), values.max())


def test_other_widths(apply):
    got = apply(
        [i16x16, vec(i32, 4)],
        lambda a, b: [
            a + a, a * 3, a >> 2, reduce_add(b), b + 1, b.bitcast(vec(i8, 16)),
            mask_bits(b < 1), any_(b == 1), all_(b == 1), floor_(b.to_float(f64) * -0.5),
        ],
        A % 30000, A[:4],
    )  # fmt: skip
    assert list(got[0]) == list(wrap(A % 30000 * 2, 16))
    assert list(got[1]) == list(wrap(A % 30000 * 3, 16))
    assert list(got[2]) == list(A % 30000 >> 2)
    assert got[5].tobytes() == A[:4].astype("i4").tobytes()
    assert [int(g[0]) for g in got[6:9]] == [0b0101, 1, 0]
    assert list(got[9]) == list(np.floor(A[:4] * -0.5))


def test_opaque_constants_are_not_folded(apply):
    """x*1.0 must flush a denormal although LLVM thinks that it is x."""
    tiny = np.full(16, 1e-40, "f4")
    product, difference = apply(
        [f32x16], lambda x: [x * opaque(f32x16, 1.0), x - opaque(f32x16, [0.0] * 16)], tiny
    )
    assert product.tobytes() == difference.tobytes() == bytes(64)


def test_constants_are_known_while_tracing():
    seen = {}

    def body(p):
        c = const(i32x16, 0xFFFFFFFF)
        seen.update(
            wrapped=c.constant, sum=(c + 3).constant, splat=splat(const(i32, 5)).constant,
            bits=const(f32, 1.0).bitcast(i32).constant, float=const(f32x16, 0.5).constant,
            compare=(c < 0).constant, lane=c[4].constant,
            mixed=const(i32x16, list(range(16))).constant,
            equal=const(i32x16, [4] * 16).constant, shift=c.shr(28).constant,
            bool=const(i1, 1).constant,
            unsigned=c.ugt(5).constant, extended=const(i8, -1).zext(i32).constant,
        )  # fmt: skip

    from vc4lab.simd import Function, build, ptr

    build("constants", {"f": Function((ptr,), None, body)})
    assert seen == {
        "wrapped": -1, "sum": 2, "splat": 5, "bits": 0x3F800000, "float": 0.5, "compare": True,
        "lane": -1, "mixed": None, "equal": 4, "shift": 15, "bool": True, "unsigned": True,
        "extended": 255,
    }  # fmt: skip


@pytest.mark.parametrize("lanes", [8, 16, 32])
def test_scale_round(apply, lanes):
    rng = np.random.default_rng(lanes)
    x, factor = rng.integers(-(1 << 15), 1 << 15, (2, lanes))
    x[:3], factor[:3] = -32768, (-32768, 32767, 1)
    (got,) = apply([vec(i16, lanes)] * 2, lambda a, b: [scale_round(a, b)], x, factor)
    assert list(got) == list(wrap((x * factor + (1 << 14)) >> 15, 16))


def test_fused_rounds_once(apply):
    ulp = 2.0**-23
    x = np.array([1 + ulp, 1 - ulp, 3.0, 1 + ulp] * 4, "f4")
    c = np.array([-1.0, -1.0, 0.5, -(1 + 2 * ulp)] * 4, "f4")

    def either(a, b):
        return [fused_(a, a, b) if has_fused() else a * a + b, splat(const(i32, has_fused()))]

    got, fused = apply([f32x16] * 2, either, x, c)
    want = x.astype("f8") ** 2 + c if fused[0] else x * x + c
    assert got.tolist() == want.astype("f4").tolist()
    assert not fused[0] or got[3] == ulp * ulp


def test_permute_two(apply):
    index = np.array([0, 16, 31, 15, 5, 21, 7, 8, 25, 9, 30, 1, 2, 17, 18, 3])
    both = np.concatenate([A, B])
    (got,) = apply([i32x16] * 3, lambda a, b, i: [permute_two(a, b, i)], A, B, index)
    assert list(got) == list(both[index])


@pytest.mark.parametrize("kind", [i32, i64, f32])
@pytest.mark.parametrize("kept", [[], [7], [0, 3, 4], list(range(8))])
def test_compress(apply, kind, kept):
    values = np.arange(8) * 3 + 5
    wanted = np.isin(np.arange(8), kept)

    def defined(x, m):
        there = iota(8) < popcount_(mask_bits(m != 0))
        return [select(there, compress(x, m != 0), 0)]

    (got,) = apply([vec(kind, 8), vec(i32, 8)], defined, values, wanted)
    assert list(got) == [*values[wanted], *[0] * (8 - len(kept))]
