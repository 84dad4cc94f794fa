"""Writes tests/slow.txt from the times of a whole run (`pytest --durations=0`): `make slow-tests`.

Functions go in, those with the longest items first, until the rest takes SECONDS.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

TABLE = Path(__file__).parents[1] / "tests" / "slow.txt"
SECONDS = 130
"""Of all processors together; collecting takes two of them another 5 seconds each."""
ROW = re.compile(r"^ *([\d.]+)s (?:call|setup|teardown) +(\S+?)(\[.*)?$")
HEAD = """\
# Tests that take the most time for each item. make test-fast leaves them out, make test does not.
# make slow-tests writes this table.
"""


def main(durations: Path) -> None:
    """Reads the report of pytest, writes the table."""
    seconds: dict[str, float] = defaultdict(float)
    items: dict[str, set[str]] = defaultdict(set)
    for line in durations.read_text().splitlines():
        found = ROW.match(line)
        if found:
            seconds[found[2]] += float(found[1])
            items[found[2]].add(found[3] or "")
    left = sum(seconds.values())
    rows = []
    for name in sorted(seconds, key=lambda name: seconds[name] / len(items[name]), reverse=True):
        if left <= SECONDS:
            break
        rows.append(name)
        left -= seconds[name]
    TABLE.write_text(HEAD + "".join(f"{row}\n" for row in sorted(rows)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
