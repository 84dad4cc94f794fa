"""How many descriptors this process has."""

import os
import threading

from vc4lab.v3d.draws import refining


def open_descriptors() -> int:
    """Their number when no process for thorough builds is there, which has two pipes."""
    refining.IDLE = 0.0
    for thread in threading.enumerate():
        if thread.name == refining.NAME:
            thread.join()
    return len(os.listdir("/proc/self/fd"))
