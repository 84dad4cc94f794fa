"""Random kernels in Python against numpy: variables through loops, branches and conditions on lanes."""

import linecache
import random

import numpy as np
import pytest

from vc4lab.kernels import python
from vc4lab.kernels.python import PythonKernel

NAMES = ("a", "b", "c", "d")
OPERATORS = ("+", "-", "&", "|", "^")
COMPARISONS = ("<", ">=", "==", "!=", ">", "<=")


class Writer:
    """One program, as a kernel and as numpy."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kernel: list[str] = []
        self.model: list[str] = []
        self.count = 0

    def operand(self) -> str:
        if self.random.random() < 0.25:
            return str(self.random.choice((0, 1, 3, -7, 15, 100, -5000, 123456789)))
        return self.random.choice(NAMES)

    def expression(self, depth: int = 2) -> tuple[str, str]:
        kind = self.random.random()
        if depth == 0 or kind < 0.15:
            name = self.random.choice(NAMES)
            return name, name
        if kind < 0.25:
            (left, left_model), places = self.expression(depth - 1), self.random.randrange(1, 16)
            return f"rotate({left}, {places})", f"np.roll({left_model}, {places})"
        if kind < 0.35:
            condition, lanes = self.condition()
            name, other = self.random.choice(NAMES), self.operand()
            return f"select({condition}, {name}, {other})", f"np.where({lanes}, {name}, np.int32({other}))"
        if kind < 0.45:
            (left, left_model), places = self.expression(depth - 1), self.random.randrange(1, 9)
            sign = self.random.choice(("<<", ">>"))
            return f"(({left}) {sign} {places})", f"(({left_model}) {sign} np.int32({places}))"
        left, left_model = self.expression(depth - 1)
        sign, right = self.random.choice(OPERATORS), self.operand()
        return f"(({left}) {sign} {right})", f"(({left_model}) {sign} np.int32({right}))"

    def condition(self) -> tuple[str, str]:
        name, sign, other = self.random.choice(NAMES), self.random.choice(COMPARISONS), self.operand()
        return f"({name} {sign} {other})", f"({name} {sign} np.int32({other}))"

    def line(self, indent: int, kernel: str, model: str | None = None) -> None:
        self.kernel.append("    " * indent + kernel)
        self.model.append("    " * indent + (kernel if model is None else model))

    def assignment(self, indent: int) -> None:
        name = self.random.choice(NAMES)
        if self.random.random() < 0.15:
            other = self.random.choice(NAMES)
            self.line(indent, f"{name}, {other} = {other}, {name}")
            return
        kernel, model = self.expression()
        self.line(indent, f"{name} = {kernel}", f"{name} = {model}")

    def block(self, indent: int, depth: int, lanes: bool = False) -> None:
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            self.count += 1
            if depth == 0 or kind < 0.5:
                self.assignment(indent)
            elif kind < 0.7 and not lanes:
                turns = self.random.choice(("0", "2", "n", "m"))
                self.line(indent, f"for i{indent} in range({turns}):")
                self.block(indent + 1, depth - 1)
            elif kind < 0.85 and not lanes:
                word = self.random.choice(("any", "all"))
                kernel, model = self.condition()
                self.line(indent, f"if {word}_({kernel}):", f"if np.{word}({model}):")
                self.block(indent + 1, depth - 1)
                if self.random.random() < 0.5:
                    self.line(indent, "else:")
                    self.block(indent + 1, depth - 1)
            else:
                self.on_lanes(indent, depth)

    def on_lanes(self, indent: int, depth: int) -> None:
        """A condition on lanes; numpy computes both sides and chooses."""
        kernel, model = self.condition()
        old, then = f"old{self.count}", f"then{self.count}"
        self.kernel.append("    " * indent + f"if {kernel}:")
        names = ", ".join(NAMES)
        self.model.append("    " * indent + f"lanes{self.count}, {old} = {model}, ({names})")
        number = self.count
        before = len(self.model)
        self.block(indent + 1, depth - 1, lanes=True)
        self.model[before:] = [line[4:] for line in self.model[before:]]
        self.model.append("    " * indent + f"{then} = ({names})")
        self.model.append("    " * indent + f"{names} = {old}")
        if self.random.random() < 0.5:
            self.kernel.append("    " * indent + "else:")
            before = len(self.model)
            self.block(indent + 1, depth - 1, lanes=True)
            self.model[before:] = [line[4:] for line in self.model[before:]]
        chosen = ", ".join(f"np.where(lanes{number}, {then}[{k}], {name})" for k, name in enumerate(NAMES))
        self.model.append("    " * indent + f"{names} = {chosen}")


def check(seed: int, engine: str) -> None:
    writer = Writer(seed)
    writer.block(1, 3)
    start = ["    a, b, c, d = index() * 3 - 20, index() ^ 5, Int(7), x[index()]"]
    end = [f"    z[{16 * k}] = {name}" for k, name in enumerate(NAMES)]
    head = ["def kernel(x: Array[Int], n: Int, m: Int, z: Out[Int]) -> None:"]
    source = "\n".join([*head, *start, *writer.kernel, *end]) + "\n"
    file = f"<fuzz {seed}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {name: getattr(python, name) for name in dir(python) if not name.startswith("__")}
    exec(compile(source, file, "exec"), names)
    x = np.random.default_rng(seed).integers(-100, 100, 16).astype(np.int32)
    found = PythonKernel(names["kernel"], {"z": "4, 16"}, engine=engine)(x, 1, 3)
    lanes = np.arange(16, dtype=np.int32)
    full = np.full(16, 7, np.int32)
    scope = {"np": np, "a": lanes * 3 - 20, "b": lanes ^ 5, "c": full, "d": x, "n": 1, "m": 3}
    model = ["def model(a, b, c, d, n, m):", *writer.model, "    return a, b, c, d"]
    with np.errstate(all="ignore"):
        exec("\n".join(model), scope)
        wanted = scope["model"](*(scope[name] for name in (*NAMES, "n", "m")))  # type: ignore[operator]
    np.testing.assert_array_equal(found, np.array(wanted), err_msg=source)


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(seed: int) -> None:
    check(seed, "interpreter")


@pytest.mark.parametrize("seed", range(100, 108))
def test_random_kernels_in_native_code(seed: int) -> None:
    check(seed, "jit")
