"""The syntax tree of a function, from the lines of its file."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from types import FunctionType


def syntax_of(function: FunctionType) -> ast.Module:
    """A module with the function's definition; its nodes have their places in the file.

    Raises TypeError if there is no source.
    """
    code = function.__code__
    start = code.co_firstlineno - 1
    lines = _definition(linecache.getlines(code.co_filename, function.__globals__), start)
    try:
        return _parse(lines, start)
    except SyntaxError:
        pass  # lines of a text that begin further left, say
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise TypeError(
            f"@kernel and @staged need the source of {function.__qualname__}, and there is none"
        ) from error
    return _parse(lines, first - 1)


def _parse(lines: list[str], before: int) -> ast.Module:
    if not lines:
        raise SyntaxError("no lines")
    return ast.parse("\n" * before + textwrap.dedent("".join(lines)))


def _definition(lines: list[str], start: int) -> list[str]:
    """The lines from `start` to the end of the first definition, by their indentation.

    `inspect` finds the end with Python's tokenizer, which takes longer than all else that is done
    with the source.
    """
    margin = -1
    for number in range(start, len(lines)):
        line = lines[number]
        text = line.lstrip()
        if not text or text[0] == "#":
            continue
        if margin < 0:
            if text.startswith("def "):
                margin = len(line) - len(text)
        elif len(line) - len(text) <= margin and text[0] not in ")]}":
            return lines[start:number]
    return lines[start:]
