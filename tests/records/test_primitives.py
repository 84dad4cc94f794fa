"""Compressed primitive lists: every coding by hand, round trips, damage."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.compressed_lists import encode_compressed

from vc4lab.records.control import bytes_reader
from vc4lab.records.primitives import ListFormat, code_size, decode_code, decode_compressed, decode_vg_inline

POINTS, LINES, TRIANGLES, RHT = 0x10, 0x11, 0x12, 0x13
TRIANGLES24, TRIANGLES_XY, RHT_XY = 0x22, 0x32, 0x33


def decode(data: bytes, form: int, base: int = 0x1000) -> list[tuple[object, ...]]:
    decoded = decode_compressed(bytes_reader(data, base), base, ListFormat(form))
    assert decoded.problem is None
    assert decoded.next == base + len(data)
    return list(decoded.items)


def bits(*fields: tuple[int, int]) -> int:
    """Word of (value, lowest bit) pairs."""
    return sum(value << low for value, low in fields)


#: (format, previous, code as hex, primitive): each row of the coding tables, computed by hand.
VECTORS = [
    (TRIANGLES, (10, 11, 12), "04", (12, 11, 13)),  # coding 0, k=0, d=1
    (TRIANGLES, (10, 11, 12), "05", (10, 12, 13)),  # k=1: fan
    (TRIANGLES, (10, 11, 12), "06", (11, 10, 13)),  # k=2
    (TRIANGLES, (10, 11, 40), "84", (40, 11, 9)),  # d=-31
    (TRIANGLES, (10, 11, 40), "7d", (10, 40, 71)),  # d=31
    (TRIANGLES, (10, 11, 12), "73f8", (17, 3, 11)),  # coding 1: +7 -8 -1
    (TRIANGLES, (10, 11, 12), "1bf8", (11, 3, 11)),  # coding 1 with bits 3:2 = 2
    (TRIANGLES, (0, 0, 0), "1f083412", (0x1234, 0x1235, 0x1236)),  # coding 2: d1=1 d2=2
    (TRIANGLES, (0, 0, 0), "ff03ff00", (0xFF, 0xFE, 0xFF)),  # coding 2: d1=-1 d2=0
    (TRIANGLES, (0, 0, 0), "81010002000300", (1, 2, 3)),
    (TRIANGLES24, (0, 0, 0), "1f08563412", (0x123456, 0x123457, 0x123458)),
    (TRIANGLES24, (0, 0, 0), "81010000020000030000", (1, 2, 3)),
    (TRIANGLES, (1, 2, 0xFFFF), "04", (0xFFFF, 2, 0)),  # indices wrap
    (LINES, (5, 6), "04", (6, 7)),  # coding 0, k=0: strip
    (LINES, (5, 6), "05", (5, 7)),  # k=1: fan
    (LINES, (5, 6), "1702", (6, 8)),  # coding 1: bits 3:2 = 1, +1 +2
    (LINES, (0, 0), "fe0001", (0x100, 0xFF)),  # coding 2: d=-1
    (LINES, (0, 0), "8134127856", (0x1234, 0x5678)),
    (RHT, (5, 6), "04", (6, 7)),
    (POINTS, (100,), "7c", (131,)),
    (POINTS, (100,), "fd", (99,)),  # coding 0 with bit 0 set
    (POINTS, (100,), "0380", (100 - 0x2000,)),  # coding 1: s14, wraps to 16 bits
    (POINTS, (0,), "813412", (0x1234,)),
]


@pytest.mark.parametrize(("form", "previous", "code", "primitive"), VECTORS)
def test_index_codings(form: int, previous: tuple[int, ...], code: str, primitive: tuple[int, ...]) -> None:
    data = bytes.fromhex(code)
    layout = ListFormat(form)
    assert code_size(data[0], layout) == len(data)
    wrapped = tuple(v & ((1 << layout.vertex_bits) - 1) for v in primitive)
    assert decode_code(int.from_bytes(data, "little"), previous, layout) == wrapped


def test_xy_codings() -> None:
    form = ListFormat(TRIANGLES_XY)
    previous = ((0, 0), (160, 0), (0, 160))
    # coding 0, k=1: dx = s7 {bits 7:2, bit 8} = {000101, 1} = 11, dy = -3
    word = bits((1, 0), (5, 2), (1, 8), (-3 & 127, 9))
    assert code_size(word & 255, form) == 2
    assert decode_code(word, previous, form) == ((0, 0), (0, 160), (11, 157))
    # coding 1, k=2: dx -500, dy 400
    word = bits((3, 0), (2, 2), (-500 & 1023, 4), (400, 14))
    assert code_size(word & 255, form) == 3
    assert decode_code(word, previous, form) == ((160, 0), (0, 0), (-500, 560))
    word = bits((15, 0), (-1 & 127, 4), (2, 11), (63, 18), (-64 & 127, 25), (0xFFF0, 32), (32, 48))
    assert code_size(word & 255, form) == 8
    assert decode_code(word, previous, form) == ((-16, 32), (-17, 34), (47, -32))
    absolute = b"\x81" + struct.pack("<6h", 1, -2, 3, -4, 5, -6)
    assert code_size(0x81, form) == len(absolute) == 13
    assert decode(absolute + b"\x80", TRIANGLES_XY) == [((1, -2), (3, -4), (5, -6))]


def test_rht_codings() -> None:
    form = ListFormat(RHT_XY)
    previous = ((0, 0), (160, 0))
    word = bits((0, 0), (63, 2), (1, 8), (5, 9))
    assert code_size(word & 255, form) == 2
    assert decode_code(word, previous, form) == ((160, 0), (159, 5))
    word = bits((3, 0), (1, 2), (100, 4), (-100 & 1023, 14))
    assert code_size(word & 255, form) == 3
    assert decode_code(word, previous, form) == ((0, 0), (260, -100))
    word = bits((2, 0), (1, 2), (0, 8), (7, 9), (9728, 16), (512, 32))
    assert code_size(word & 255, form) == 6
    assert decode_code(word, previous, form) == ((9728, 512), (9730, 519))
    absolute = b"\x81" + struct.pack("<4h", 9728, 512, 5120, 7168)
    assert decode(absolute + b"\x80", RHT_XY) == [((9728, 512), (5120, 7168))]


def test_strip_and_fan_are_one_byte_each() -> None:
    strip = [(0, 1, 2), (2, 1, 3), (2, 3, 4), (4, 3, 5)]
    fan = [(0, 1, 2), (0, 2, 3), (0, 3, 4)]
    assert len(encode_compressed(strip)) == 4 + 3 + 1
    assert len(encode_compressed(fan)) == 4 + 2 + 1
    assert encode_compressed(strip, absolute=True)[:8] == bytes.fromhex("8100000100020081")


@pytest.mark.parametrize("steps", [1, -3, 20])
def test_relative_branch(steps: int) -> None:
    """0x82 counts 32-byte blocks from the block it stands in; the previous primitive survives."""
    memory = bytearray(2048)
    start = 1000
    memory[start : start + 7] = bytes.fromhex("81010002000300")
    memory[start + 7] = 0x82
    memory[start + 8 : start + 10] = struct.pack("<h", steps)
    target = ((start + 7) & ~31) + 32 * steps
    memory[target : target + 2] = b"\x04\x80"
    decoded = decode_compressed(bytes_reader(bytes(memory)), start, ListFormat(TRIANGLES))
    assert decoded.items == ((1, 2, 3), (3, 2, 4))
    assert decoded.branches == (target,)
    assert (decoded.first_size, decoded.next) == (10, target + 2)


INDEX = st.integers(0, 0xFFFF)
NEAR = st.integers(1000, 1060)
COORDINATE = st.integers(-0x8000, 0x7FFF) | st.integers(-40, 40)


@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    form = ListFormat(data.draw(st.sampled_from([0x10, 0x11, 0x12, 0x13, 0x20, 0x22, 0x32, 0x33])))
    xy = form.vertex_bits == 32
    vertex = st.tuples(COORDINATE, COORDINATE) if xy else INDEX | NEAR
    vertices = st.tuples(*[vertex] * form.vertices)
    primitives = data.draw(st.lists(vertices, max_size=30))
    short = encode_compressed(primitives, form.value)
    absolute = encode_compressed(primitives, form.value, absolute=True)
    assert decode(short, form.value) == decode(absolute, form.value) == primitives
    assert len(short) <= len(absolute)


@given(st.binary(max_size=200), st.integers(0, 255), st.integers(0, 64))
def test_hostile_lists(data: bytes, form: int, base: int) -> None:
    decoded = decode_compressed(bytes_reader(data, base), base, ListFormat(form), limit=500)
    assert len(decoded.items) <= 500
    if decoded.problem is None and not decoded.branches:
        assert decoded.next <= base + len(data)
    decode_vg_inline(bytes_reader(data, base), base, form & 15)


def test_loops_and_reserved() -> None:
    loop = bytes.fromhex("820000")
    decoded = decode_compressed(bytes_reader(loop), 0, ListFormat(TRIANGLES), limit=100)
    assert decoded.problem is not None
    assert "not ended after 100 codes" in decoded.problem
    assert "not documented" in str(decode_compressed(bytes_reader(loop), 0, ListFormat(0x31)).problem)
    decoded = decode_compressed(bytes_reader(b"\x02\x00"), 0, ListFormat(POINTS))
    assert "run length" in str(decoded.problem)
    with pytest.raises(ValueError, match="doesn't fit"):
        encode_compressed([(1, 2, 0x10000)])
    with pytest.raises(ValueError, match="2 vertices in a list of triangles index16"):
        encode_compressed([(1, 2)])
    with pytest.raises(ValueError, match="not documented"):
        encode_compressed([], 0x00)


def test_vg_inline() -> None:
    words = [0x00100010, 0x00200010, 0x00200020, 0x0, 0x0, 0xBFFF0000]
    data = struct.pack("<6I", *words) + b"rest"
    decoded = decode_vg_inline(bytes_reader(data), 0, 4)
    assert decoded.problem is None
    assert decoded.next == 24
    assert decoded.items[:3] == (((16, 16),), ((16, 32),), ((32, 32),))
