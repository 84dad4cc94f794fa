"""What the options of all commands have in common: ranges, engines, addresses, names of files.

A value that an option cannot take ends with exit code 2 and a usage message; the ranges are those
of `vc4lab.ranges`, which the Python interface checks as well.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import click
from typer.core import TyperCommand

from vc4lab.ranges import Real, Whole

__all__ = ["Address", "ByteOrderChoice", "Command", "Engine", "Number", "limits"]


class Engine(StrEnum):
    """How QPU code is executed."""

    JIT = "jit"
    INTERPRETER = "interpreter"


class ByteOrderChoice(StrEnum):
    """How the bytes of a recorded surface are read."""

    AUTO = "auto"
    RGBA = "rgba"
    BGRA = "bgra"


def limits(allowed: Whole, least: int | None = None) -> dict[str, Any]:
    """The range of a whole number as typer takes it."""
    return {"min": allowed.least if least is None else least, "max": allowed.most}


class Number(click.ParamType):
    """A finite number in a range."""

    name = "float"

    def __init__(self, allowed: Real) -> None:
        self.allowed = allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.allowed.check(float(value))
        except (TypeError, ValueError, OverflowError):
            self.fail(f"{_short(value)} is not a number {self.allowed}.", param, ctx)


class Address(click.ParamType):
    """A whole number as people write addresses: 0x8000, 32768."""

    name = "address"

    def __init__(self, allowed: Whole, multiple: int = 1) -> None:
        self.allowed = allowed
        self.multiple = multiple

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self.allowed.check(value if isinstance(value, int) else int(value, 0))
        except ValueError:
            self.fail(f"{_short(value)} is not a number {self.allowed}; 0x8000, say.", param, ctx)
        if number % self.multiple:
            self.fail(f"{_short(value)} is not a multiple of {self.multiple}.", param, ctx)
        return number


class Command(TyperCommand):
    """A command whose files have names: an empty one would mean the folder one is in."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, then look at the names of files."""
        rest = super().parse_args(ctx, args)
        for param in self.params:
            given = ctx.params.get(param.name or "")
            if isinstance(param.type, click.Path) and given is not None and not str(given):
                raise click.BadParameter("an empty name of a file or folder.", ctx, param)
        return rest


def _short(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "…")
