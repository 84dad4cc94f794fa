"""VPM vectors in every mode: native, eager and side by side, against the manual's words."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from tests.support import vpm_reference

from vc4lab.simd import (
    Function,
    Value,
    build,
    const,
    eager,
    i32,
    i32x16,
    load,
    mask16,
    mask_from_bits,
    ptr,
    store,
)
from vc4lab.simd.eager import running
from vc4lab.simd.eager_wide import WideEager
from vc4lab.simd.value import Lanes, const_bits
from vc4lab.v3d.vpm.access import read_vector, vector_places, write_vector
from vc4lab.v3d.vpm.setup import VPM_BYTES
from vc4lab.v3d.vpm.shader_rows import GenericSetup, first_address

CASES = 400


def cases() -> Any:
    """(setup word, address, mask) at random: any word, any address its field holds."""
    rng = np.random.default_rng(52)
    for word, start, mask in rng.integers(0, 1 << 32, (CASES, 3), np.uint32).tolist():
        setup = GenericSetup(word & 0x3FFFFFFF)
        yield setup, first_address(GenericSetup(start & 0xFF | int(setup) & ~0xFF)), mask & 0xFFFF


@lru_cache
def module(extension: str, target: Any) -> Any:
    def write(vpm: Value, word: Value, address: Value, value: Value, bits: Value) -> None:
        write_vector(vpm, word, address, load(i32x16, value), mask_from_bits(bits))

    def read(vpm: Value, word: Value, address: Value, result: Value) -> None:
        store(result, read_vector(vpm, word, address, extension))

    functions = {
        "write": Function((ptr, i32, i32, ptr, i32), None, write),
        "read": Function((ptr, i32, i32, ptr), None, read),
    }
    return build("vpm", functions, target=target)


@pytest.mark.parametrize("target", [None, eager.TARGET], ids=["native", "eager"])
@pytest.mark.parametrize("extension", ["zero", "sign"])
def test_every_mode_is_what_the_reference_says(extension: str, target: Any) -> None:
    run = module(extension, target)
    rng = np.random.default_rng(53)
    vpm = rng.integers(0, 256, VPM_BYTES, np.uint8)
    expected = vpm.copy()
    value, result = np.zeros(16, np.uint32), np.zeros(16, np.uint32)
    for setup, address, bits in cases():
        value[:] = rng.integers(0, 1 << 32, 16, np.uint32)
        mask = np.array([bits >> lane & 1 for lane in range(16)], bool)
        run["read"](vpm.ctypes.data, int(setup), address, result.ctypes.data)
        assert (result == vpm_reference.read(expected, setup, address, extension)).all(), setup
        run["write"](vpm.ctypes.data, int(setup), address, value.ctypes.data, bits)
        vpm_reference.write(expected, setup, address, value, mask)
        assert (vpm == expected).all(), setup
        offsets, _ = vpm_reference.places(setup, address)
        assert vector_places(int(setup), address) == set(offsets.tolist())


def test_vpms_side_by_side() -> None:
    """Each run has its own VPM, value and mask."""
    runs, rng = 5, np.random.default_rng(54)
    wide = WideEager("default", np.arange(runs))
    with running(wide):
        place = const(ptr, wide.alloca(VPM_BYTES, 64).constant)
        found = wide.bytes_at(place)
        assert found is not None
        vpms, _ = found
        vpms[:] = rng.integers(0, 256, vpms.shape, np.uint8)
        expected = vpms.copy()
        for setup, address, _ in cases():
            word, at = const_bits(i32, int(setup)), const_bits(i32, address)
            values = rng.integers(0, 1 << 32, (runs, 16), np.uint32)
            masks = rng.integers(0, 2, (runs, 16)).astype(bool)
            words = wide.words(read_vector(place, word, at, "sign"))
            for k in range(runs):
                one = vpm_reference.read(expected[k], setup, address, "sign")
                assert (np.broadcast_to(words, (runs, 16))[k] == one).all(), setup
                vpm_reference.write(expected[k], setup, address, values[k], masks[k])
            value, mask = Lanes(i32x16, "", values), Lanes(mask16, "", masks)
            write_vector(place, word, at, value, mask)
            assert (vpms == expected).all(), setup
