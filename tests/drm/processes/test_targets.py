"""Files of /proc that stay open: what they say is of now and of the thread they were made for."""

import contextlib
import os
import subprocess
import sys
import threading

from vc4lab.drm.processes.filters import WINDOW
from vc4lab.drm.processes.targets import KEPT_FILES, KeptFiles, Task


def memories() -> int:
    """Memory files that this process has open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").endswith("/mem")
    return count


def test_a_descriptor_that_was_closed_and_opened_again() -> None:
    kept = KeptFiles()
    task = Task(os.getpid(), kept)
    number = WINDOW.start + 7
    assert task.position(number) is None
    file = os.memfd_create("a")
    try:
        os.dup2(file, number)
        os.lseek(number, 16, os.SEEK_SET)
        first = task.position(number)
        os.lseek(number, 32, os.SEEK_SET)
        second = task.position(number)
        os.close(number)
        assert first is not None
        assert second is not None
        assert (first.position, second.position) == (16, 32)
        assert task.position(number) is None
        os.dup2(file, number)
        again = task.position(number)
        assert again is not None
        assert again.position == 32
        os.close(number)
    finally:
        os.close(file)
        kept.close()


def test_files_of_dead_threads_are_closed_and_others_stay() -> None:
    kept = KeptFiles()
    before = memories()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        for number in (os.getpid(), child.pid):
            assert Task(number, kept).read_some(id(kept), 0) == b""
        assert memories() == before + 2
        kept.sweep()
        assert memories() == before + 2
    finally:
        child.communicate()
    kept.sweep()
    assert memories() == before + 1
    kept.close()
    assert memories() == before


def test_many_threads_do_not_use_up_descriptors() -> None:
    kept = KeptFiles()
    before = memories()
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(KEPT_FILES + 20)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            assert thread.native_id is not None
            Task(thread.native_id, kept).read_some(id(kept), 0)
        assert memories() == before + KEPT_FILES
    finally:
        stop.set()
        kept.close()
