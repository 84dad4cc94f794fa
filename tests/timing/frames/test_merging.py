"""Sequences that become one: each number once, in their order, or in some if they contradict."""

import random
from itertools import accumulate

import numpy as np
import pytest

from vc4lab.timing.frames.merging import merged


def words(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def merge(
    groups: list[list[list[int]]], draw: list[int] | None = None, lowest: list[int] | None = None
) -> list[int]:
    """The sequences of some groups, merged; without a draw all numbers are of the same one."""
    sequences = [one for group in groups for one in group]
    count = len({number for one in sequences for number in one})
    return merged(
        words(0, *accumulate(len(group) for group in groups)),
        words(0, *accumulate(len(one) for one in sequences)),
        words(*(number for one in sequences for number in one)),
        words(*(draw or [0] * count)),
        words(*(lowest or range(count))),
    ).tolist()


def test_the_order_of_all_sequences_is_kept() -> None:
    draw = random.Random(3)
    for _ in range(40):
        groups, order, next_number = [], [], 0
        for _group in range(draw.randint(0, 3)):
            mine = list(range(next_number, next_number + draw.randint(0, 12)))
            next_number += len(mine)
            draw.shuffle(mine)
            parts = [sorted(draw.sample(mine, len(mine) // 2), key=mine.index) for _ in range(3)]
            groups.append([mine, *parts])
            order += mine
        assert merge(groups, lowest=[0] * next_number) == order


def test_of_several_the_draw_at_hand_goes_on_then_the_lowest_vertex_is_first() -> None:
    assert merge([[[0, 1], [2, 3]]], draw=[0, 1, 1, 0], lowest=[5, 1, 6, 0]) == [0, 1, 2, 3]
    assert merge([[[0], [1], [2]]], lowest=[7, 3, 5]) == [1, 2, 0]


@pytest.mark.parametrize("count", [2, 3, 40])
def test_sequences_that_contradict_each_other_have_each_number_once(count: int) -> None:
    """A program may write its tile lists itself."""
    numbers = list(range(count))
    later = list(range(count, 2 * count))
    found = merge([[numbers, numbers[::-1]], [later[::-1], later, later[1:]]])
    assert sorted(found[:count]) == numbers
    assert sorted(found[count:]) == later
    shuffle = random.Random(count)
    for _ in range(20):
        mixed = [shuffle.sample(numbers, shuffle.randint(0, count)) for _ in range(5)]
        assert sorted(merge([[*mixed, numbers], [later]])) == numbers + later
