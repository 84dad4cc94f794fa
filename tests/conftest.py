"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import settings

# No test may fail because a machine is slow or because of luck: no deadline, the same examples
# every time. `make fuzz` is the place for new examples.
settings.register_profile("vc4lab", deadline=None, derandomize=True)
settings.load_profile("vc4lab")
