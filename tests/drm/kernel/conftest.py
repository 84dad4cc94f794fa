"""What tests of the kernel's half share."""

import pytest
from tests.support.job_maker import Maker


@pytest.fixture
def maker() -> Maker:
    return Maker()
