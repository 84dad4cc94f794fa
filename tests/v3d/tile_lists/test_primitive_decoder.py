"""Native decoding of compressed lists against the reference decoder, on good and on random bytes."""

import ctypes
import random

import pytest
from tests.support.compressed_lists import encode_compressed

from vc4lab.memory import GuestMemory
from vc4lab.records.primitives import ListFormat, decode_compressed
from vc4lab.simd import build, const, i1, i32, kernel, ptr, store, unroll
from vc4lab.v3d.tile_lists.primitive_decoder import RUN_TRIANGLES, Decoder, runs, take_run

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
        decoded = decode_compressed(memory.read, address + 1, form, LIMIT)
        rows, end, status, _ = run(listers, memory, code, address)
        if decoded.problem is None:
            assert [r[:3] for r in rows] == [golden_words(i, form) for i in decoded.items]
            assert (end, status) == (decoded.next, 0)
        elif "run length" not in decoded.problem:
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


@kernel(args=(ptr, i32, ptr, i32), returns=i32)
def lister_of_runs(memory, address, out, limit):
    decoder = Decoder(memory, 2, 1)
    decoder.open(address)
    decoder.budget.set(limit)
    count = const(i32, 0)
    more = const(i1, True)
    while more:
        if runs(decoder):
            before, steps = take_run(decoder)
            for k in range(RUN_TRIANGLES):
                for word in unroll(3):
                    index = (before[word] + steps[word] * (k + 1)) & 0xFFFF
                    store(out + (count + k) * 16 + 4 * word, index)
            count = count + RUN_TRIANGLES
        else:
            more = decoder.next()
            if more:
                store(out + count * 16, decoder.i0.get())
                store(out + count * 16 + 4, decoder.i1.get())
                store(out + count * 16 + 8, decoder.i2.get())
                count = count + 1
    return count


@pytest.mark.parametrize("seed", range(6))
def test_runs_taken_together_are_those_of_golden(memory, seed):
    rng = random.Random(seed)
    data = b"\x81" + rng.randbytes(6)
    for _ in range(30):
        step = rng.choice((bytes([rng.randrange(16) << 4 | 3, rng.randrange(256)]), b"\x33\x33"))
        data += step * rng.randrange(14) + rng.choice((b"", b"\x04", b"\x0f\x00\x12\x34"))
    clip = rng.randrange(2)  # a clip record is that of the first triangle
    memory.write(0x5000, (b"\x31\x01\x02\x03\x04" if clip else b"\x30") + data + b"\x80" * 9)
    reference = decode_compressed(memory.read, 0x5005 if clip else 0x5001, ListFormat(0x12))
    native = build("runs", {"runs": lister_of_runs}, key="test of runs")["runs"]
    out = (ctypes.c_uint32 * (4 * LIMIT + 16))()
    count = native(memory.base, 0x5000, ctypes.addressof(out), LIMIT)
    found = [tuple(out[4 * k : 4 * k + 3]) for k in range(count)]
    assert found == list(reference.items)
