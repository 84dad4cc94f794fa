"""The native walk of compressed lists against the golden decoder, on good and on random bytes."""

from __future__ import annotations

import ctypes
import random

import pytest

from vc4lab.memory import GuestMemory
from vc4lab.records.primitives import ListFormat, encode_compressed, walk_compressed
from vc4lab.simd import build, const, i32, kernel, ptr, store
from vc4lab.v3d.geometry.primitive_decoder import Decoder

FORMATS = (0x10, 0x11, 0x12, 0x13, 0x22, 0x32, 0x33)
LIMIT = 2000


def make_lister(code):
    @kernel(args=(ptr, i32, ptr, i32), returns=i32)
    def lister(memory, address, out, limit):
        decoder = Decoder(memory, code & 15, code >> 4)
        decoder.open(address)
        decoder.budget.set(limit)
        count = const(i32, 0)
        while decoder.next():
            place = out + count * 16
            store(place, decoder.i0.get())
            store(place + 4, decoder.i1.get())
            store(place + 8, decoder.i2.get())
            store(place + 12, decoder.flags.get())
            count = count + 1
        store(out + count * 16, decoder.address.get())
        store(out + count * 16 + 4, decoder.status.get())
        store(out + count * 16 + 8, decoder.clip_record.get())
        return count

    return lister


@pytest.fixture(scope="module")
def listers():
    return build("listers", {f"f{code}": make_lister(code) for code in FORMATS})


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


def run(listers, memory, code, address, limit=LIMIT):
    out = (ctypes.c_uint32 * (4 * LIMIT + 16))()
    count = listers[f"f{code}"](memory.base, address, ctypes.addressof(out), limit)
    rows = [tuple(out[4 * k : 4 * k + 4]) for k in range(count)]
    return rows, out[4 * count], out[4 * count + 1], out[4 * count + 2]


def golden_words(item, form):
    if isinstance(item[0], tuple):
        item = tuple((x & 0xFFFF) | (y & 0xFFFF) << 16 for x, y in item)
    if form.vertices == 1:
        return (item[0],) * 3
    return item if form.vertices == 3 else (item[0], item[1], item[1])


@pytest.mark.parametrize("code", FORMATS)
def test_random_bytes_agree_with_golden(listers, memory, code):
    rng = random.Random(code)
    form = ListFormat(code)
    for trial in range(150):
        address = 0x1000 + trial * 7
        data = bytearray(rng.randbytes(120))
        for k in range(0, 120, rng.choice((3, 9, 30))):
            data[k] = rng.choice((0x81, 0x04, 0x08, 0xFF & rng.getrandbits(8)))
        if trial % 3:
            data = bytearray(encode_list(rng, form))
        memory.write(address, b"\x30" + bytes(data) + b"\x80" * 40)
        walk = walk_compressed(memory.read, address + 1, form, LIMIT)
        rows, end, status, _ = run(listers, memory, code, address)
        if walk.problem is None:
            assert [r[:3] for r in rows] == [golden_words(i, form) for i in walk.items]
            assert (end, status) == (walk.next, 0)
        elif "run length" not in walk.problem:
            assert status == 2


def encode_list(rng, form):
    def vertex():
        if form.data == 3:
            return (rng.randrange(-300, 300), rng.randrange(-300, 300))
        return rng.choice((rng.randrange(1 << form.vertex_bits), rng.randrange(20)))

    items = [tuple(vertex() for _ in range(form.vertices)) for _ in range(rng.randrange(1, 20))]
    return encode_compressed(items, int(form.value))


def test_clipped_list_flags_its_first_primitive_only(listers, memory):
    word = 0x00123458 | 5
    memory.write(0x2000, b"\x31" + word.to_bytes(4, "little"))
    memory.write(0x2005, encode_compressed([(1, 2, 3), (3, 2, 4)]))
    rows, end, status, clip = run(listers, memory, 0x12, 0x2000)
    assert rows == [(1, 2, 3, 5), (3, 2, 4, 0)]
    assert (status, clip) == (0, 0x00123458)
    assert end == 0x2005 + 7 - 3 + 1 + 1  # coding 2, coding 0, end


def test_relative_branch_is_followed(listers, memory):
    memory.write(0x3000, b"\x30" + encode_compressed([(9, 8, 7)])[:-1] + b"\x82\xfe\xff")
    memory.write(0x2FC0, b"\x04\x80")
    rows, end, status, _ = run(listers, memory, 0x12, 0x3000)
    assert [r[:3] for r in rows] == [(9, 8, 7), (7, 8, 8)]
    assert (end, status) == (0x2FC2, 0)


@pytest.mark.parametrize("data", [b"\x82\x00\x00", b"\x04\x82\x00\x00"])
def test_endless_lists_end(listers, memory, data):
    memory.write(0x4000, b"\x30" + data)
    rows, _, status, _ = run(listers, memory, 0x12, 0x4000, 1000)
    assert status == 2
    assert len(rows) <= 1000


def test_end_of_memory_is_safe(listers, memory):
    memory.fill(0x3FFFFFF0, 16, 0x04)
    memory.write(0x3FFFFFF0, b"\x30")
    rows, *_ = run(listers, memory, 0x12, 0xFFFFFFF0, 1500)
    assert len(rows) < 1500
