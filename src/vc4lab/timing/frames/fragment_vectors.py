"""Vectors of 16 fragments: the quads of a frame four at a time, as the front end hands them on.

Quads of one draw in one tile follow one another into vectors, in the order in which primitives are
drawn; a change of state ends a vector. Whether a vector may hold quads of several primitives is not
documented: `across` says so. Source: hardware reference 1.2, 7.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vc4lab.timing.frames.columns import starts
from vc4lab.timing.frames.frame import Frame, quads_of
from vc4lab.timing.frames.vertex_batches import tile_groups

QUADS = 4
"""In a vector."""


@dataclass(frozen=True)
class FragmentVectors:
    """Quads in their order, and the vectors that they fill.

    Attributes
    ----------
    block, quad
        The block of each quad, and the quad's number there (0 to 3).
    first_quad
        The first quad of each vector, and at the end the number of quads.
    first_vector
        The first vector of each group of lists (`vertex_batches.tile_groups`), and at the end the
        number of vectors.
    rejected
        Covered quads that are in no vector: outside of the Z planes, or hidden.
    """

    block: NDArray[np.int64]
    quad: NDArray[np.int64]
    first_quad: NDArray[np.int64]
    first_vector: NDArray[np.int64]
    rejected: int


def fragment_vectors(frame: Frame, *, early_z: bool = False, across: bool = True) -> FragmentVectors:
    """The vectors of a frame.

    early_z: leave out quads that fail the depth test, in draws that enable early Z (record 96);
    this is the most that early Z can do. Blocks of the coverage pipe make no vectors.
    """
    blocks, lists, draws = frame.blocks, frame.lists, frame.draws
    owner = frame.list_of_block
    lanes = blocks["flags"]
    if early_z:
        enabled = draws["early_z"][lists["draw"][owner]]
        lanes = np.where(enabled, blocks["passed"], lanes)
    lanes = np.where(draws["coverage_pipe"][lists["draw"][owner]], 0, lanes)
    there = quads_of(lanes)[:, None] >> (4 * np.arange(QUADS)) & 1
    block, quad = there.nonzero()
    covered = quads_of(blocks["covered"])[:, None] >> (4 * np.arange(QUADS)) & 1
    groups = tile_groups(frame)
    group = np.repeat(np.arange(len(groups) - 1), np.diff(groups))[owner[block]]
    ends = np.diff(group, append=-1) != 0
    if not across:
        ends |= np.diff(owner[block], append=-1) != 0
        ends |= np.diff(blocks["primitive"][block], append=-1) != 0
    firsts = _chunks(ends)
    first_quad = np.append(firsts, len(block))
    counts = np.bincount(group[firsts], minlength=len(groups) - 1)
    rejected = int(covered.sum()) - len(block)
    return FragmentVectors(block, quad, first_quad, starts(counts), rejected)


def _chunks(ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the quads that begin vectors; `ends`: after which quads one ends in any case."""
    if not len(ends):
        return np.zeros(0, np.int64)
    last = ends.nonzero()[0]
    begins = np.concatenate([[0], last[:-1] + 1])
    within = np.arange(len(ends)) - np.repeat(begins, np.diff(np.append(begins, len(ends))))
    found: NDArray[np.int64] = (within % QUADS == 0).nonzero()[0]
    return found
