"""Conditions and loops of a translation whose ends are not reached, and the variables in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from vc4lab.driver.compiler.ssa.values import If, Loop, Node, Value
from vc4lab.driver.compiler.tgsi.program import COMPONENTS, File

Variable = tuple[File, int, int]
"""A component of a register that is no memory: file, number, component."""


@dataclass(eq=False)
class OpenIf:
    """A condition whose end is not reached."""

    node: If
    outer: list[Node]
    old: dict[Variable, Value | None] = field(default_factory=dict)
    """What the variables were that the way at hand has written."""
    then: dict[Variable, Value] | None = None
    """What the first way made of its variables; None: it jumped away, or is at hand."""
    then_jumped: bool = False


@dataclass(eq=False)
class OpenLoop:
    """A loop whose end is not reached; `written`: the variables of its body, in order."""

    node: Loop
    outer: list[Node]
    written: tuple[Variable, ...]
    is_left: bool = False


def named(variable: Variable) -> str:
    """Its name in listings."""
    file, number, component = variable
    return f"{file.value}[{number}].{COMPONENTS[component]}"
