"""Kernels run side by side: each run gets what it gets alone, or all learn that they cannot."""

from typing import Any

import numpy as np
import pytest

from vc4lab.simd import (
    Value,
    alloca,
    any_,
    const,
    gather,
    i32,
    i32x16,
    iota,
    load,
    permute,
    scatter,
    select,
    splat,
    staged,
    store,
)
from vc4lab.simd.eager import Eager, running
from vc4lab.simd.eager_wide import Diverged, WideEager
from vc4lab.simd.value import Lanes

RUNS = 7


@staged
def mixture(words: Value) -> Value:
    """Arithmetic, lanes and memory of each run's own."""
    place = alloca(4 * 64)
    for row in range(4):
        store(place + row * 64, words * row)
    scatter(place, iota() * 8, words ^ -1, words > 0)
    found = gather(i32, place, (words & 31) << 2, words < 0, 5)
    total = const(i32x16, 0)
    for row in range(4):
        total = total + load(i32x16, place + row * 64)
    return select(words == total, found, found - total) + iota()


def test_each_run_gets_what_it_gets_alone() -> None:
    words = np.random.default_rng(3).integers(0, 1 << 32, (RUNS, 16), np.uint32)
    wide = WideEager("default", np.arange(RUNS))
    with running(wide):
        together = wide.words(mixture(Lanes(i32x16, "", words)))
    for k in range(RUNS):
        with running() as one:
            alone = one.words(mixture(Lanes(i32x16, "", words[k])))
        assert (together[k] == alone).all(), k


def test_some_go_on_with_their_memory() -> None:
    wide = WideEager("default", np.arange(RUNS))
    with running(wide):
        place = alloca(64)
        store(place, Lanes(i32x16, "", np.arange(RUNS * 16, dtype=np.uint32).reshape(RUNS, 16)))
    part = wide.some(np.array([1, 4]))
    with running(part):
        words = part.words(load(i32x16, place))
        assert words[:, 0].tolist() == [16, 64]
        store(place, splat(const(i32, 9)))
    with running(wide):
        assert wide.words(load(i32x16, place))[:, 0].tolist() == [0, 9, 32, 48, 9, 80, 96]


@pytest.mark.parametrize(
    "asks",
    [
        lambda x: x[3],
        lambda x: any_(x > 100),
        lambda x: permute(x, x),
        lambda x: x // 3,
        lambda x: load(i32, alloca(64) + x[0]),
    ],
)
def test_what_is_one_for_all_must_be_the_same(asks: Any) -> None:
    apart = np.arange(RUNS * 16, dtype=np.uint32).reshape(RUNS, 16)
    same = np.broadcast_to(apart[0], (RUNS, 16))
    with running(WideEager("default", np.arange(RUNS))):
        with pytest.raises(Diverged):
            asks(Lanes(i32x16, "", apart))
        found = Eager.words(asks(Lanes(i32x16, "", same)))
    with running():
        assert (found == Eager.words(asks(Lanes(i32x16, "", apart[0])))).all()
