"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import settings

from vc4lab.v3d.draws.compile_threshold import CompileThreshold

# No test may fail because a machine is slow or because of luck: no deadline, the same examples
# every time. `make fuzz` is the place for new examples.
settings.register_profile("vc4lab", deadline=None, derandomize=True)
settings.load_profile("vc4lab")

# Tests want the native code at once, also where nothing is compiled yet.
CompileThreshold.uses = 0
