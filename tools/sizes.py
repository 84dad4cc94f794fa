"""Lines and tokens of each folder beside the table `sizes.txt`, so that growth shows in a review.

    python tools/sizes.py            prints both; fails where a folder is above its row
    python tools/sizes.py --record   writes the table anew, to be committed with what has grown

Tokens are Python's, without comments, line ends and indentation; a docstring is one.
"""

from __future__ import annotations

import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".txt")
TOLERANCE, SMALL = 1.01, (5, 50, 400)
"""What a folder may be above its row before the table must be written anew: a factor, or files,
lines and tokens.
"""
_UNCOUNTED = frozenset((tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT))

Sizes = tuple[int, int, int]
"""Files, lines, tokens."""


def size_of(path: Path) -> Sizes:
    """Of one file."""
    text = path.read_text()
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return 1, text.count("\n"), sum(1 for token in found if token.type not in _UNCOUNTED)


def measured() -> dict[str, Sizes]:
    """Of each folder of the package and beside it, with totals of `src` and `tests`."""
    sizes: dict[str, Sizes] = {}
    for place in ("src", "tests", "benchmarks", "examples", "tools"):
        for path in sorted((ROOT / place).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            names = {place}
            if place == "src":
                names.add("/".join(parts[:3]) if len(parts) > 3 else "src/vc4lab/*.py")
            if place == "tests":
                names.add("/".join(parts[:2]) if len(parts) > 2 else "tests/*.py")
            found = size_of(path)
            for name in names:
                before = sizes.get(name, (0, 0, 0))
                sizes[name] = before[0] + found[0], before[1] + found[1], before[2] + found[2]
    return dict(sorted(sizes.items()))


def recorded() -> dict[str, Sizes]:
    """The table."""
    rows = (line.split() for line in TABLE.read_text().splitlines()[1:])
    return {name: (int(files), int(lines), int(tokens)) for name, files, lines, tokens in rows}


def main(arguments: list[str]) -> int:
    """Exit status: 1 if growth is not recorded."""
    sizes = measured()
    if arguments == ["--record"]:
        rows = [f"{'folder':24}{'files':>8}{'lines':>9}{'tokens':>10}"]
        rows += [f"{name:24}{f:8}{n:9}{t:10}" for name, (f, n, t) in sizes.items()]
        TABLE.write_text("\n".join(rows) + "\n")
        return 0
    known = recorded()
    grown = []
    print(f"{'folder':24}{'files':>8}{'lines':>9}{'tokens':>10}   beside {TABLE.name}")
    for name, size in sizes.items():
        row = known.get(name, (0, 0, 0))
        changes = [now - then for now, then in zip(size, row, strict=True)]
        limits = [max(n * TOLERANCE, n + few) for n, few in zip(row, SMALL, strict=True)]
        is_grown = any(now > limit for now, limit in zip(size, limits, strict=True))
        grown += [name] * is_grown
        beside = f"{changes[1]:+} lines, {changes[2]:+} tokens" if any(changes) else "the same"
        print(f"{name:24}{size[0]:8}{size[1]:9}{size[2]:10}   {beside}{' GROWN' * is_grown}")
    if grown:
        print(f"\nmore than {TABLE.name} says: {', '.join(grown)}; if that is wanted,")
        print("python tools/sizes.py --record, and commit the table with it")
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
