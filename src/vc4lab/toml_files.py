"""Tables in TOML that people write: read up to a limit, in a time that grows with the file only."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

from vc4lab.files import read_file

MOST_PARTS = 32
"""Parts of a key such as `a.b.c`, at most; the time of Python's parser grows with their square."""
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\."""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+){{{MOST_PARTS}}}")


class NotToml(ValueError):  # noqa: N818 - its text goes into a sentence
    """The file cannot be used; the text says why."""


def read_toml(path: str | os.PathLike[str], limit: int) -> tuple[dict[str, Any], str]:
    """A file's table and its text. Raises NotToml, OSError; for a pipe or device, too."""
    data = read_file(path, limit, plain=True)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotToml("not a text file") from None
    long = _LONG_KEY.search(text)
    if long is not None:
        line = text.count("\n", 0, long.start()) + 1
        raise NotToml(f"line {line}: a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:  # numbers that are too long are a ValueError
        raise NotToml(f"not TOML: {error}") from None
