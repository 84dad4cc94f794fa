"""Settings of the whole suite."""

import functools
import gc
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No test may fail because a machine is slow or because of luck: no deadline, the same examples
# every time. `make fuzz` is the place for new examples.
settings.register_profile("vc4lab", deadline=None, derandomize=True)
settings.load_profile("vc4lab")

# A script starts its background jobs with SIGINT ignored, and so would every program that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # until all items are there: 400,000 objects that stay


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


def pytest_collection_finish() -> None:
    """The collector looks at what tests make, no longer at modules and items, and less often."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
