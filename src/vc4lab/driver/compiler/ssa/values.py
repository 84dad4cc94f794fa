"""Declares the parts of a shader in SSA form: values, blocks of them, conditions and loops.

A value is one word per lane, made once. Control flow is a tree, as the shading language has it.
Where ways meet, values have new names: `If` and `Loop` have *parameters*, and each way that comes
there says which values they get (`Yield`, `Jump`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Value:
    """One word per lane: an operation on other values, or a parameter.

    Attributes
    ----------
    op
        Name in `ops.OPS`, or "parameter".
    args
        The values that it is made of.
    attributes
        The constant parts of the operation: register numbers, a texture, a component.
    line
        The line of the TGSI text; 0: there is none.
    """

    __slots__ = ("args", "attributes", "line", "op")

    def __init__(
        self, op: str, args: tuple[Value, ...] = (), attributes: tuple[Any, ...] = (), line: int = 0
    ) -> None:
        self.op = op
        self.args = args
        self.attributes = attributes
        self.line = line

    def __repr__(self) -> str:
        return f"<{self.op} {self.attributes}>"


@dataclass(eq=False)
class Block:
    """Values in order; those with effects happen in this order."""

    values: list[Value] = field(default_factory=list)


@dataclass(eq=False)
class Jump:
    """Leaves a loop ("break") or goes on with it ("continue"), with its parameters' values."""

    kind: str
    loop: Loop
    values: tuple[Value, ...] = ()


@dataclass(eq=False)
class If:
    """Two ways. `parameters` get `then_values` or `else_values`; a way that jumps away has none."""

    condition: Value
    then: list[Node] = field(default_factory=list)
    otherwise: list[Node] = field(default_factory=list)
    parameters: tuple[Value, ...] = ()
    then_values: tuple[Value, ...] | None = ()
    else_values: tuple[Value, ...] | None = ()


@dataclass(eq=False)
class Loop:
    """Repeats its body; it is left by a Jump only.

    `parameters` get `initial` at first, then what each "continue" says; the end of the body is one.
    `results` get what the "break" says by which a lane leaves.
    """

    body: list[Node] = field(default_factory=list)
    parameters: tuple[Value, ...] = ()
    initial: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()


Node = Block | If | Loop | Jump


@dataclass(eq=False)
class Function:
    """A whole shader.

    Attributes
    ----------
    stage
        VERT or FRAG.
    arrays
        Number and size in registers of each array of temporaries or outputs that is indexed.
    """

    stage: str
    body: list[Node] = field(default_factory=list)
    arrays: dict[str, int] = field(default_factory=dict)

    def values(self) -> list[Value]:
        """All values that blocks have, in the order of the text."""
        found: list[Value] = []
        waiting: list[Node] = self.body[::-1]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Block):
                found += node.values
            elif isinstance(node, If):
                waiting += [*node.otherwise[::-1], *node.then[::-1]]
            elif isinstance(node, Loop):
                waiting += node.body[::-1]
        return found


def parameter(name: str, line: int = 0) -> Value:
    """A value that an If or a Loop gives; `name` is for listings."""
    return Value("parameter", (), (name,), line)
