"""Where vertices come from besides shaders: NV arrays copied, index lists scanned."""

import ctypes

import numpy as np
import pytest
from tests.support.binning import index_range

from vc4lab.memory import GuestMemory
from vc4lab.v3d.vertex.fetch import NvContext, copy_function
from vc4lab.v3d.vertex.pipeline import buffer_bytes
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

ARRAYS = 0x10000


@pytest.fixture(scope="module")
def memory():
    return GuestMemory()


@pytest.mark.parametrize("skip", [0, 4])
def test_nv_vertices_are_copied_into_rows(memory, skip):
    data = np.arange(9 * 300, dtype=np.uint32)
    memory.write(ARRAYS, data.tobytes())
    buffer = (ctypes.c_char * (buffer_bytes(5, 299) + 64))()
    start = (ctypes.addressof(buffer) + 63) & ~63
    context = NvContext(memory=memory.base, output=start, stride=36, rows=5, pitch=5 * ROW_BYTES)
    context.base, context.first, context.last = ARRAYS + 4 * skip, 7, 299
    copy_function()(context.address)
    raw = np.frombuffer(ctypes.string_at(start, buffer_bytes(5, 299)), np.uint32)
    rows = raw.reshape(-1, 5, 16).transpose(1, 0, 2).reshape(5, -1)[:, 7:300]
    assert np.array_equal(rows.T, data.reshape(300, 9)[7:, skip : skip + 5])


@pytest.mark.parametrize("bits", [8, 16])
def test_index_range(memory, bits):
    rng = np.random.default_rng(bits)
    indices = rng.integers(3, 200 if bits == 8 else 60000, 500).astype(f"u{bits // 8}")
    memory.write(ARRAYS, indices.tobytes())
    found = index_range(memory, bits, 0xC0000000 + ARRAYS, 500)
    assert (found.first, found.last) == (indices.min(), indices.max())
    used = np.frombuffer(ctypes.string_at(found.used, 65536), np.uint8)
    assert np.array_equal(np.flatnonzero(used), np.unique(indices))
    empty = index_range(memory, bits, ARRAYS, 0)
    assert empty.first > empty.last
