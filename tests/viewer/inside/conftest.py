"""Captures that the pages of `vc4lab view` look into, opened once for all tests of the folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from vc4lab.cli.view import _session
from vc4lab.viewer.inside.session import Session

DATA = Path(__file__).parents[2] / "data"
SMALL = DATA / "captures" / "small.vc4cap"
TRI = DATA / "captures" / "tri.vc4cap"
CUBE = DATA / "vc4-jobs" / "kmscube_smooth"


@cache
def _known(path: Path) -> Session:
    return _session(path)


@pytest.fixture(scope="session")
def session_of() -> Callable[[Path], Session]:
    return _known
