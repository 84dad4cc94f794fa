"""Vectors of fragments: each quad once, four at a time, never of two states."""

import numpy as np
import pytest
from tests.timing.frames.recorded import Drawn

from vc4lab.timing.frames.fragment_vectors import QUADS, fragment_vectors
from vc4lab.timing.frames.frame import Frame, count_bits, quads_of
from vc4lab.timing.frames.vertex_batches import tile_groups


@pytest.fixture(scope="module")
def frames() -> list[Frame]:
    return Drawn("glmark2_ideas", True).frames[0]


@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("early_z", [True, False])
def test_each_quad_is_in_one_vector(frames: list[Frame], early_z: bool, across: bool) -> None:
    for frame in frames:
        found = fragment_vectors(frame, early_z=early_z, across=across)
        places = list(zip(found.block.tolist(), found.quad.tolist(), strict=True))
        assert places == sorted(set(places))
        covered = int(count_bits(quads_of(frame.blocks["covered"])).sum())
        assert len(places) + found.rejected == covered
        sizes = np.diff(found.first_quad)
        assert not len(sizes) or (sizes.min() >= 1 and sizes.max() == QUADS)
        assert int(found.first_vector[-1]) == len(sizes)
        owner = frame.list_of_block[found.block]
        for start, end in zip(found.first_quad, found.first_quad[1:], strict=False):
            mine = owner[start:end]
            assert len(set(frame.lists["draw"][mine].tolist())) == 1
            assert len(set(frame.lists["tile"][mine].tolist())) == 1
            if not across:
                assert len(set(mine.tolist())) == 1
                assert len(set(frame.blocks["primitive"][found.block[start:end]].tolist())) == 1


def test_vectors_are_filled(frames: list[Frame]) -> None:
    """With several primitives in a vector only the last one of a group may have room."""
    frame = frames[-1]
    found = fragment_vectors(frame)
    assert len(found.first_vector) == len(tile_groups(frame))
    sizes = np.diff(found.first_quad)
    last = np.zeros(len(sizes), bool)
    last[found.first_vector[1:][np.diff(found.first_vector) > 0] - 1] = True
    assert (sizes[~last] == QUADS).all()
    alone = fragment_vectors(frame, across=False)
    assert len(alone.first_quad) > len(found.first_quad)


def test_early_z_rejects_hidden_quads(frames: list[Frame]) -> None:
    frame = frames[-1]
    hidden = fragment_vectors(frame, early_z=True).rejected - fragment_vectors(frame).rejected
    enabled = frame.draws["early_z"][frame.lists["draw"][frame.list_of_block]]
    flags, passed = (quads_of(frame.blocks[name][enabled]) for name in ("flags", "passed"))
    assert hidden == int((count_bits(flags) - count_bits(passed)).sum())
