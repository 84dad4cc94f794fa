"""What tests of the kernel's half share."""

from __future__ import annotations

import pytest
from tests.support.job_maker import Maker


@pytest.fixture
def maker() -> Maker:
    return Maker()
