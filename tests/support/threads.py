"""Which threads of a simulator run."""

import gc
import threading
import time


def simulator_threads() -> set[threading.Thread]:
    """Threads that a V3D or a device has started, and that live."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("vc4lab-")}


def left_of(threads: set[threading.Thread], seconds: float = 60.0, held: int = 0) -> set[threading.Thread]:
    """Which of these threads live; all but those `held` get a moment to end."""
    until = time.monotonic() + seconds
    while True:
        gc.collect()
        left = threads & simulator_threads()
        if len(left) <= held or time.monotonic() > until:
            return left
        time.sleep(0.01)
