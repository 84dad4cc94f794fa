"""Settings of the whole suite."""

import functools
from pathlib import Path

import pytest
from hypothesis import settings

# No test may fail because a machine is slow or because of luck: no deadline, the same examples
# every time. `make fuzz` is the place for new examples.
settings.register_profile("vc4lab", deadline=None, derandomize=True)
settings.load_profile("vc4lab")


@functools.cache
def slow_rows() -> frozenset[str]:
    """Files and functions that `make test-fast` leaves out: they take most time for each item.

    `tools/slow_tests.py` writes the table from the times of a run.
    """
    lines = (Path(__file__).parent / "slow.txt").read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks them: `-m "not slow"`."""
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in slow_rows() or name.partition("::")[0] in slow_rows():
            item.add_marker("slow")
