"""The native scan of tile lists against the golden parser, and on broken lists."""

import ctypes
import random
import struct

import numpy as np
import pytest
from tests.support.compressed_lists import encode_compressed
from tests.support.tile_lists import apply_record, final_state, scan_tile_lists, segment_list

from vc4lab.memory import GuestMemory
from vc4lab.records import control
from vc4lab.records.control import STATE_RECORD_BYTES
from vc4lab.records.primitives import ListFormat, decode_compressed
from vc4lab.v3d.state.render_state import default_state, state_bytes, state_from_bytes
from vc4lab.v3d.tile_lists import scan_context as sc
from vc4lab.v3d.tile_lists.scanner import ListScanner


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


def used_set(draw):
    data = ctypes.string_at(draw.used, sc.MAX_VERTICES)
    return set(np.flatnonzero(np.frombuffer(data, np.uint8)).tolist())


def test_state_record_sizes_are_those_of_the_record_table():
    for identifier, size in STATE_RECORD_BYTES.items():
        assert control.RECORD_SIZES[identifier] == size


def test_python_and_native_apply_records_alike(memory):
    rng = random.Random(5)
    data = b""
    state = default_state()
    for _ in range(60):
        identifier = rng.choice([k for k in STATE_RECORD_BYTES if k != 56])
        record = bytes([identifier]) + rng.randbytes(STATE_RECORD_BYTES[identifier] - 1)
        apply_record(state, record)
        data += record
    memory.write(0x100, data + b"\x12")
    result = scan_tile_lists(memory, [0x100], default_state())
    assert state_bytes(final_state(result)) == state_bytes(state)
    assert not result.errors


def test_defaults():
    state = default_state()
    assert (state.z_min, state.z_max, state.point_size, state.line_width) == (0, 1, 1, 1)


def random_tiles(memory, rng, tiles):
    """Random lists in memory; what a scan must find: [(tile, state, address, primitives)]."""
    states = [bytes([96]) + rng.randbytes(3) for _ in range(3)]
    states += [bytes([103]) + rng.randbytes(4) for _ in range(2)]
    shader = [bytes([65]) + (16 * k).to_bytes(4, "little") for k in range(4)]
    state = default_state()
    expected, addresses = [], []
    place = 0x10000
    for tile in range(tiles):
        addresses.append(place)
        data = bytearray()
        for _ in range(rng.randrange(6)):
            choice = rng.randrange(4)
            if choice == 0:
                record = rng.choice(states + shader)
                apply_record(state, record)
                data += record
            elif choice == 1:
                kind = rng.choice((0x10, 0x11, 0x12))
                record = bytes([56, kind])
                apply_record(state, record)
                data += record
            elif choice == 2:  # branch a bit further
                data += b"\x10" + (place + len(data) + 9).to_bytes(4, "little") + b"\xff" * 4
            else:
                vertices = (1, 2, 3)[state.list_format & 15]
                items = [tuple(rng.randrange(300) for _ in range(vertices)) for _ in range(rng.randrange(6))]
                expected.append((tile, state_bytes(state), place + len(data), items))
                data += b"\x30" + encode_compressed(items, state.list_format)
        data += b"\x12"
        memory.write(place, bytes(data))
        place += len(data) + rng.randrange(9)
    return addresses, expected, state


@pytest.mark.parametrize("seed", range(6))
def test_scan_equals_golden(memory, seed):
    rng = random.Random(seed)
    addresses, expected, state = random_tiles(memory, rng, 120)
    result = scan_tile_lists(memory, addresses, default_state())
    assert not result.errors
    assert state_bytes(final_state(result)) == state_bytes(state)
    found = [
        (tile, state_bytes(result.draws[draw].state), address, count)
        for tile, draw, address, count in segment_list(result)
    ]
    assert found == [(t, s, a, len(items)) for t, s, a, items in expected]
    assert result.entries == sum(len(items) for *_, items in expected)
    assert len({state_bytes(d.state) for d in result.draws}) == len(result.draws)
    for draw in result.draws:
        mine = [i for _, s, _, i in expected if s == state_bytes(draw.state)]
        indices = {index for items in mine for item in items for index in item}
        assert used_set(draw) == indices
        assert draw.primitives == sum(map(len, mine))
        if indices:
            assert (draw.first, draw.last) == (min(indices), max(indices))
        else:
            assert draw.first > draw.last
    offsets = (ctypes.c_int32 * (len(addresses) + 1)).from_address(result.tile_offsets)
    for tile in range(len(addresses)):
        own = [s[0] for s in segment_list(result)[offsets[tile] : offsets[tile + 1]]]
        assert own == [tile] * len(own)
    assert offsets[len(addresses)] == result.segment_count


def test_many_draws_and_errors_grow_the_arrays(memory):
    place, addresses = 0x100000, []
    for k in range(200):
        addresses.append(place)
        data = bytes([96]) + k.to_bytes(3, "little") + b"\x30" + encode_compressed([(k, 1, 2)])
        memory.write(place, data + (b"\x12" if k % 2 else b"\xaa"))
        place += 64
    result = scan_tile_lists(memory, addresses, default_state())
    assert len(result.draws) == 200
    assert [d.primitives for d in result.draws] == [1] * 200
    assert used_set(result.draws[150]) == {150, 1, 2}
    assert [(e.tile, e.byte, e.reason) for e in result.errors] == [
        (k, 0xAA, sc.ILLEGAL_RECORD) for k in range(0, 200, 2)
    ]
    assert result.errors[0].address == 0x100000 + 4 + 6
    assert "not allowed" in result.errors[0].text


def test_a_tile_that_is_walked_again_begins_in_the_state_it_began_in(memory):
    """Room for draws runs out in a tile that has drawn in the state of the one before."""
    place, addresses = 0x120000, []
    triangle = b"\x30" + encode_compressed([(0, 1, 2)])
    for k in range(100):
        addresses.append(place)
        state = bytes([96]) + (k + 1).to_bytes(3, "little")
        memory.write(place, triangle + state + triangle + b"\x12")
        place += 64
    result = scan_tile_lists(memory, addresses, default_state())
    assert [d.state.config for d in result.draws] == list(range(101))
    assert [d.primitives for d in result.draws] == [1, *[2] * 99, 1]
    assert result.segment_count == 200


def test_sub_lists_and_their_depth(memory):
    def sub(target):
        return b"\x11" + target.to_bytes(4, "little")

    triangle = b"\x30" + encode_compressed([(0, 1, 2)])
    memory.write(0x200000, sub(0x200100) + triangle + b"\x12")
    memory.write(0x200100, triangle + b"\x12")
    memory.write(0x200200, sub(0x200300) + b"\x12")
    memory.write(0x200300, sub(0x200100) + b"\x12")
    result = scan_tile_lists(memory, [0x200000, 0x200200, 0x200000], default_state())
    assert [s[2] for s in segment_list(result)] == [0x200100, 0x200005] * 2
    assert [(e.tile, e.address, e.reason) for e in result.errors] == [(1, 0x200300, sc.TOO_DEEP)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x10\x00\x00\x30\x00", sc.ENDLESS),  # a branch to itself
        (b"\x30\x82\x00\x00", sc.ENDLESS),
        (b"\x38\x55\x30\x80", sc.BAD_FORMAT),
        (b"\x00", sc.HALTED),
        (b"\x2f" + bytes(13), sc.ILLEGAL_RECORD),
    ],
)
def test_broken_lists_become_errors(memory, data, reason):
    memory.write(0x300000, data)
    memory.write(0x300100, b"\x30" + encode_compressed([(5, 6, 7)]) + b"\x12")
    result = scan_tile_lists(memory, [0x300000, 0x300100], default_state())
    assert [(e.tile, e.reason) for e in result.errors] == [(0, reason)] or reason == sc.BAD_FORMAT
    assert result.errors[0].reason == reason


def test_random_memory_is_survived(memory):
    rng = random.Random(77)
    for trial in range(40):
        base = 0x400000 + trial * 0x2000
        data = bytearray(rng.randbytes(4096))
        for k in range(0, 4096, 5):
            data[k] = rng.choice((0x30, 0x31, 0x80, 0x60, 0x38, 0x12, 0x41, 1, 0x10, 0x11))
        memory.write(base, bytes(data))
        scan_tile_lists(memory, [base + 97 * k for k in range(40)], default_state())
    scan_tile_lists(memory, [0xFFFFFFFF, 0x3FFFFFFF], default_state())


def test_no_tiles(memory):
    state = default_state()
    state.config = 7
    result = scan_tile_lists(memory, [], state_from_bytes(state_bytes(state)))
    assert (result.segment_count, result.draws, list(result.errors)) == (0, [], [])
    assert final_state(result).config == 7


def test_used_maps_hold_nothing_of_earlier_scans(memory):
    """Arrays go from scan to scan; marks of the one before must not."""
    rng = random.Random(9)
    scanner = ListScanner(memory)
    starts, ends = (ctypes.c_int32 * 1)(0x500000), (ctypes.c_int32 * 1)(sc.NO_END)
    for _ in range(12):
        draws = rng.randrange(1, 40)  # some need more room
        data, expected = b"", []
        for number in range(draws):
            triangle = [rng.randrange(sc.MAX_VERTICES) for _ in range(3)]
            expected.append(set(triangle))
            data += control.build(99, line_width=float(number)) + control.build(48)
            data += b"\x81" + b"".join(k.to_bytes(2, "little") for k in triangle) + b"\x80"
        memory.write(0x500000, data + b"\x12")
        scanner.set_state(state_bytes(default_state()))
        result = scanner.scan(ctypes.addressof(starts), ctypes.addressof(ends), 1)
        assert not result.errors
        assert [used_set(draw) for draw in result.draws] == expected
        ranges = [(min(used), max(used)) for used in expected]
        assert [(draw.first, draw.last) for draw in result.draws] == ranges


@pytest.mark.parametrize("seed", range(40))
def test_runs_of_consecutive_vertices(memory, seed):
    """Triangles of a vertex array, now and then something else, up to the last vertex."""
    rng = random.Random(seed)
    start = rng.choice((0, 300, 65400, 65530))
    data = b"\x81" + struct.pack("<3H", start, start + 1, start + rng.choice((2, 2, 2, 3)))
    for _ in range(rng.randrange(1, 12)):
        step = rng.choice((b"\x33\x33",) * 6 + (b"\xd3\xdd", b"\x63\x66", b"\x33\x43", b"\x04"))
        data += step * rng.choice((1, 2, 3, 4, 5, 8, 13, 27))
    start = 0x3000 + seed
    memory.write(start, b"\x38\x12\x30" + data + b"\x80\x12")
    result = scan_tile_lists(memory, [start], default_state())
    assert not result.errors
    reference = decode_compressed(memory.read, start + 3, ListFormat(0x12))
    assert reference.problem is None
    (draw,) = result.draws
    vertices = {index for item in reference.items for index in item}
    assert draw.primitives == len(reference.items)
    assert (draw.first, draw.last) == (min(vertices), max(vertices))
    assert used_set(draw) == vertices
