"""Tests that need supervised programs."""

import pytest

from vc4lab.drm.device.host import why_not


def need_supervisor() -> None:
    """Skips a test where programs cannot be supervised."""
    reason = why_not()
    if reason:
        pytest.skip(f"programs cannot be supervised here: {reason}")
