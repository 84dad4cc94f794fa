"""What a vertex shader reads and writes of the VPM: every mode."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from tests.support.vertices import ARRAYS, ENGINES, UNIFORMS, shade, words

from vc4lab.memory import GuestMemory
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.vertex.pipeline import VertexKey


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


MODES = """
    ldi vr_setup, {read:#x}
    ldi vw_setup, {write:#x}
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    mov vpm, r0 ; nop
    mov vpm, r1 ; nop
    nop ; nop ; thrend
    nop
    nop
"""


def element(rows, setup, address, lane):
    """Element of a generic access from the manual's table: (row, column, first bit, bits)."""
    size, laned, horizontal = setup >> 8 & 3, setup >> 10 & 1, setup >> 11 & 1
    per, bits = {0: (4, 8), 1: (2, 16)}.get(size, (1, 32))
    block, part = divmod(address, per)
    word, sub = (lane, part) if laned else divmod(part * 16 + lane, per)
    if per == 1:
        word, sub = lane, 0
    row, column = (block, word) if horizontal else ((block & 0x30) + word, block & 15)
    return row % 64, column, sub * bits, bits


def model(rows, setup, number):
    """The vectors that `number` reads give."""
    size = setup >> 8 & 3
    per = {0: 4, 1: 2}.get(size, 1)
    address, stride = (setup & 255) % (64 * per), (setup >> 12 & 63) or 64
    result = []
    for _ in range(number):
        vector = []
        for lane in range(16):
            row, column, shift, bits = element(rows, setup, address, lane)
            vector.append(int(rows[row, column]) >> shift & ((1 << bits) - 1))
        result.append(vector)
        address = (address + stride) % (64 * per)
    return result


def setups():
    rng = np.random.default_rng(3)
    for size in range(4):
        for laned in (0, 1):
            for horizontal in (0, 1):
                address, stride = int(rng.integers(256)), int(rng.integers(64))
                if horizontal:
                    address %= 4 * {0: 4, 1: 2}.get(size, 1)
                yield address | size << 8 | laned << 10 | horizontal << 11 | stride << 12


@pytest.mark.parametrize("setup", list(setups()), ids=hex)
def test_every_way_to_read(memory, setup):
    """Reads of 8, 16 and 32 bits, packed and laned, along rows and columns, any stride."""
    rng = np.random.default_rng(setup)
    memory.write(ARRAYS, rng.integers(0, 1 << 32, 64, np.uint32).tobytes())
    rows = np.zeros((64, 16), np.uint32)
    rows[:4] = np.frombuffer(memory.read(ARRAYS, 256), np.uint32).reshape(16, 4).T
    expected = np.array(model(rows, setup, 2), np.uint32)
    program = words(MODES.format(read=setup | 2 << 20, write=0x1A00))
    for engine in ENGINES:
        key = VertexKey(program, ((0, 16, 0),), 16, 2, engine)
        found, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        assert np.array_equal(found, expected), engine


@pytest.mark.parametrize("setup", [0x1800, 0x1902, 0x1004], ids=hex)
def test_narrow_reads_with_a_sign(memory, setup):
    data = np.random.default_rng(setup).integers(0, 1 << 32, 64, np.uint32) | 0x80800080
    memory.write(ARRAYS, data.astype(np.uint32).tobytes())
    program = words(MODES.format(read=setup | 2 << 20, write=0x1A00))
    kind = (np.int8, np.int16)[setup >> 8 & 3]
    unknowns = DEFAULT_UNKNOWNS.with_(vpm_read_extension="sign")
    for engine in ENGINES:
        key = VertexKey(program, ((0, 16, 0),), 16, 2, engine)
        zero, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        key = VertexKey(program, ((0, 16, 0),), 16, 2, engine, unknowns=unknowns)
        sign, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        assert np.array_equal(sign.view(np.int32), zero.astype(kind)), engine
        assert not np.array_equal(sign, zero)


@pytest.mark.parametrize("setup", list(setups()), ids=hex)
def test_every_way_to_write(memory, setup):
    data = np.random.default_rng(setup).integers(0, 1 << 32, (16, 2), np.uint32)
    memory.write(ARRAYS, data.tobytes())
    size = setup >> 8 & 3
    per = {0: 4, 1: 2}.get(size, 1)
    address, stride = (setup & 255) % (64 * per), (setup >> 12 & 63) or 64
    expected = np.zeros((64, 16), np.uint32)
    for vector in range(2):
        for lane in range(16):
            row, column, shift, bits = element(expected, setup, address, lane)
            kept = int(expected[row, column]) & ~(((1 << bits) - 1) << shift)
            word = int(data[lane, vector]) & ((1 << bits) - 1)
            expected[row, column] = kept | word << shift
        address = (address + stride) % (64 * per)
    program = words(MODES.format(read=0x201A00, write=setup))
    for engine in ENGINES:
        key = VertexKey(program, ((0, 8, 0),), 8, 64, engine)
        found, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 8)})
        assert np.array_equal(found, expected), engine


@pytest.mark.parametrize("engine", ENGINES)
def test_read_setups_queue(memory, engine):
    """A setup after two unread vectors is ignored, after one it is taken."""
    memory.write(ARRAYS, np.arange(16 * 4, dtype=np.uint32).tobytes())
    text = """
    ldi vr_setup, 0x201a00
    ldi vr_setup, 0x101a03
    ldi vw_setup, 0x1a00
    mov r0, {source} ; nop
    mov vpm, vpm ; nop
    mov vr_setup, r0 ; nop
    mov vpm, vpm ; nop
    mov vpm, vpm ; nop
    mov vpm, vpm ; nop
    nop ; nop ; thrend
    nop
    nop
    """
    memory.write(UNIFORMS, struct.pack("<I", 0x101A02))
    for source in ("unif", "8"):  # 8: a vertical 8-bit access of 16 vectors
        key = VertexKey(words(text.format(source=source)), ((0, 16, 0),), 16, 4, engine)
        if source == "unif":
            with pytest.raises(Unsupported, match="VTX-007"):  # the last row
                shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        key = replace(key, forgiving=True)
        rows, *_ = shade(memory, key, 0, 15, {0: (ARRAYS, 16)})
        assert rows[0].tolist() == list(range(0, 64, 4))
        assert rows[1].tolist() == list(range(1, 64, 4))
        if source == "unif":
            assert rows[2].tolist() == list(range(2, 64, 4))
            assert not rows[3].any()
