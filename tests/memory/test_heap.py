"""The process's own heap: one for all threads."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

COUNT = """
import ctypes, sys, threading
from vc4lab.memory.heap import share_heap
if sys.argv[1] == "shared":
    share_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.open_memstream.restype = libc.fclose.restype = ctypes.c_void_p
ready, done = threading.Barrier(4), threading.Barrier(4)
def work():
    ready.wait()
    libc.malloc(ctypes.c_size_t(5000))
    done.wait()
for _ in range(3):
    threading.Thread(target=work).start()
ready.wait()
done.wait()
text, size = ctypes.c_void_p(), ctypes.c_size_t()
stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
libc.malloc_info(0, stream)
libc.fclose(stream)
print(ctypes.string_at(text.value, size.value).count(b"<heap "))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="not glibc")
@pytest.mark.parametrize(
    ("mode", "said", "several"),
    [("shared", {}, False), ("own", {}, True), ("shared", {"MALLOC_ARENA_MAX": "8"}, True)],
)
def test_threads_share_a_heap(mode: str, said: dict[str, str], several: bool) -> None:
    """Unless the user says how many there are."""
    plain = {k: v for k, v in os.environ.items() if k not in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")}
    done = subprocess.run(
        [sys.executable, "-c", COUNT, mode],
        env=plain | said, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (int(done.stdout) > 1) == several
