"""The memory of the global scheduler."""

from __future__ import annotations

from vc4lab.simd import Array, Struct, i32, i64
from vc4lab.timing.compute.state import MAX_CLUSTERS


class GlobalScheduler(Struct):
    """The global scheduler of a list thread.

    free_at: when the next piece can go; interval, latency: clocks. cluster: the one that a piece
    went to last. batch, end: what is left of the group at hand (thread 0). first_batch: of the
    group that was dealt last (thread 1). tiles: that each cluster has at hand; dealt: batches
    (thread 0) or tiles (thread 1) that each one has got.
    """

    free_at = i64
    interval = i64
    latency = i64
    cluster = i32
    batch = i32
    end = i32
    first_batch = i32
    tiles = Array(i32, MAX_CLUSTERS)
    dealt = Array(i64, MAX_CLUSTERS)
