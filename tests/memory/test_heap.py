"""Where the process's own large pieces lie."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import numpy
from vc4lab.memory import GuestMemory
from vc4lab.memory.host import LARGE

GuestMemory()
before = numpy.ones(2 * LARGE, numpy.uint8)
del before
large, small = numpy.ones(2 * LARGE, numpy.uint8), numpy.ones(LARGE // 2, numpy.uint8)
print(open("/proc/self/maps").read())
print("at", large.ctypes.data, small.ctypes.data)
"""
HEAP = re.compile(r"^(\w+)-(\w+) .*\[heap\]$", re.MULTILINE)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc: not Linux")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_large_pieces_do_not_lie_among_small_ones() -> None:
    """After the first one was freed, too: glibc would put the next one on the heap."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    large, small = map(int, done.stdout.split()[-2:])
    heap = [(int(start, 16), int(end, 16)) for start, end in HEAP.findall(done.stdout)]
    assert any(start <= small < end for start, end in heap)
    assert not any(start <= large < end for start, end in heap)
