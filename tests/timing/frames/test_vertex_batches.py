"""Batches of vertices: the native collector and its definition."""

import itertools

import numpy as np
import pytest

from vc4lab.timing.frames.vertex_batches import BATCH, collect_batches


def defined(vertices: list[int], starts: list[int], kept: int) -> tuple[list[int], list[int]]:
    """Batch of each vertex, and the sizes of batches."""
    batches: list[list[int]] = []
    found = []
    for start, end in itertools.pairwise(starts):
        first = len(batches)
        for vertex in vertices[start:end]:
            known = range(max(first, len(batches) - 1 - kept), len(batches))
            here = [number for number in known if vertex in batches[number]]
            if not here:
                if len(batches) == first or len(batches[-1]) == BATCH:
                    batches.append([])
                batches[-1].append(vertex)
                here = [len(batches) - 1]
            found.append(here[-1])
    return found, [len(batch) for batch in batches]


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_batches_are_as_defined(kept: int) -> None:
    rng = np.random.default_rng(5)
    vertices = np.concatenate([rng.integers(0, 40, 300), np.arange(100), rng.integers(0, 9, 50)])
    starts = np.array([0, 0, 130, 131, 400, 450])
    found = collect_batches(vertices.astype(np.uint32), starts.astype(np.int32), kept)
    batch_of, sizes = defined(vertices.tolist(), starts.tolist(), kept)
    assert found.batch_of.tolist() == batch_of
    assert found.sizes.tolist() == sizes
    assert found.first_batch[0] == 0
    assert found.first_batch[-1] == len(sizes)


def test_nothing_to_collect() -> None:
    found = collect_batches(np.zeros(0, np.uint32), np.zeros(1, np.int32))
    assert not len(found.batch_of)
    assert not len(found.sizes)
    assert found.first_batch.tolist() == [0]
