"""What both ways of a branch or loop have changed is merged: containers, attributes, fields."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from vc4lab.simd import Value, build, eager, i32, kernel
from vc4lab.simd.target import host_target


@pytest.fixture(autouse=True, params=["native", "eager"])
def engine(request):
    """Each test twice: compiled, and as plain Python."""
    engines[:] = [host_target() if request.param == "native" else eager.TARGET]


engines: list = []


def compiled(function):
    return build("test", {"f": function}, target=engines[0])["f"]


def test_containers_merge_in_place():
    @kernel(args=(i32,), returns=i32)
    def f(n):
        registers = [n, 0, 0]
        alias = registers
        table = {"x": n, "y": 5}
        pair = (1, 2)
        if n > 3:
            registers[1] = n * 2
            table["x"] = 100
            pair = (pair[1], n)
        for i in range(n):
            registers[2] += i
            table["y"] = table["y"] + pair[0]
        assert alias is registers
        return alias[0] + alias[1] * 10 + alias[2] * 100 + table["x"] + table["y"] + pair[1]

    def expected(n):
        registers, x, y, pair = [n, 0, 0], n, 5, (1, 2)
        if n > 3:
            registers[1], x, pair = n * 2, 100, (2, n)
        for i in range(n):
            registers[2] += i
            y += pair[0]
        return registers[0] + registers[1] * 10 + registers[2] * 100 + x + y + pair[1]

    native = compiled(f)
    for n in (0, 2, 4, 9):
        assert native(n) == expected(n)


def test_attributes_lists_of_captured_objects_merge_too():
    class Machine:
        def __init__(self):
            self.registers = [0, 0]

    @kernel(args=(i32,), returns=i32)
    def f(n):
        machine = Machine()
        if n > 0:
            machine.registers[0] = n
        for _ in range(n):
            machine.registers[1] = machine.registers[1] + 2
        return machine.registers[0] * 10 + machine.registers[1]

    native = compiled(f)
    assert (native(3), native(-3)) == (36, 0)


class Point(NamedTuple):
    x: Value
    y: Value


@dataclass(frozen=True)
class Line:
    slope: Value
    kind: str


def test_named_tuples_and_dataclasses_merge():
    @kernel(args=(i32,), returns=i32)
    def f(n):
        point, line = Point(n, n + 1), Line(n * 2, "k")
        if n > 5:
            point = Point(point.y, point.x)
            line = Line(line.slope + 1, "k")
        for _ in range(3):
            point = Point(point.y, point.x + 1)
            line = Line(line.slope + 1, line.kind)
        return point.x * 1000 + point.y + line.slope * 1000000

    def expected(n):
        x, y, slope = n, n + 1, n * 2
        if n > 5:
            x, y, slope = y, x, slope + 1
        for _ in range(3):
            x, y, slope = y, x + 1, slope + 1
        return x * 1000 + y + slope * 1000000

    native = compiled(f)
    assert [native(2), native(8)] == [expected(2), expected(8)]
