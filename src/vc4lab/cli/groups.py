"""Groups of options: a dataclass declares them once, and each command that has them takes one object.

A field annotated with `typer.Option` is an option; other fields are for the commands. A command names a
group as the type of a parameter, and `Without` names options of the group that it does not have, which
keep their defaults. `spread` makes the function that typer sees.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import ParameterInfo


class Group:
    """Marks a dataclass whose annotated fields are options of commands."""


class Without:
    """Names options of a group that a command does not have."""

    def __init__(self, *names: str) -> None:
        self.names = names


def spread(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the command with the options of its groups as parameters of their own, in the groups' places.

    Raises ValueError if `Without` names what is no option.
    """
    taken: dict[str, tuple[type[Group], list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    hints = get_type_hints(command, include_extras=True)
    result = hints.pop("return", None)
    for parameter in inspect.signature(command).parameters.values():
        hint = hints[parameter.name]
        group, left_out = _group_of(hint)
        if group is None:
            parameters.append(parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        options = _options_of(group, left_out)
        taken[parameter.name] = group, [one.name for one in options]
        parameters += options

    @functools.wraps(command)
    def call(**given: Any) -> Any:
        for name, (group, names) in taken.items():
            given[name] = group(**{each: given.pop(each) for each in names})
        return command(**given)

    del call.__wrapped__  # else its signature would be looked at
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": result}
    return call


def _group_of(hint: Any) -> tuple[type[Group] | None, tuple[str, ...]]:
    """The group that a parameter's type names, with the options that are left out."""
    left_out: tuple[str, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        left_out = next((note.names for note in notes if isinstance(note, Without)), ())
    if isinstance(hint, type) and issubclass(hint, Group):
        return hint, left_out
    return None, ()


def _options_of(group: type[Group], left_out: tuple[str, ...]) -> list[inspect.Parameter]:
    """The parameters of a group's options."""
    hints = get_type_hints(group, include_extras=True)
    found = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name]
        )
        for field in fields(group)  # type: ignore[arg-type]  # a dataclass
        if any(isinstance(note, ParameterInfo) for note in get_args(hints[field.name]))
    ]
    unknown = set(left_out) - {one.name for one in found}
    if unknown:
        raise ValueError(f"{group.__name__} has no option {', '.join(sorted(unknown))}")
    return [one for one in found if one.name not in left_out]


def _default(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default
