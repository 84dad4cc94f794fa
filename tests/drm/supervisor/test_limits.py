# ruff: noqa: F821, PT017 - clients are other programs
"""Limits of descriptors, and ioctls that come as writes of programs under qemu."""

import gc
import itertools
import os
import subprocess
import sys

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice


def test_the_window_can_be_full(device: DrmDevice) -> None:
    def client() -> None:
        files = [open_card("renderD128") for _ in range(130)]  # it has a hundred
        assert len({*files}) == len(files)
        assert {ioctl(fd, 0x0C, "QQ", 1, 0) for fd in files} == {(1, 1)}
        for fd in files:
            os.close(fd)
        assert 900 <= open_card() < 1000

    run_client(device, client)


def test_a_low_limit_of_descriptors_is_raised(device: DrmDevice) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:

        def client() -> None:
            assert open_card() >= 900

        run_client(device, client)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_limit_that_cannot_be_raised_is_a_sentence() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (500, 500))\n"
        "from vc4lab.drm.device.device import DrmDevice\n"
        "with DrmDevice() as device:\n"
        "    try: device.run(['true'])\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("NotPossible ulimit -Hn: 500")


def test_ioctls_of_programs_under_qemu_come_as_writes(device: DrmDevice) -> None:
    """What setup/preload.py makes of them, here by hand."""

    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.pwrite64.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
        mark = 0x7663346C << 32

        def write(fd: int, request: int, data: bytearray) -> int:
            held = (ctypes.c_char * len(data)).from_buffer(data)
            if libc.pwrite64(fd, held, len(data), mark | request) < 0:
                return ctypes.get_errno()
            return 0

        fd = open_card()
        param = bytearray(struct.pack("<IIQ", 0, 0, 0))
        assert write(fd, number(0x47, 16), param) == 0
        assert struct.unpack("<IIQ", param)[2] == 0x02443356
        assert write(fd, number(0x47, 16), bytearray(struct.pack("<IIQ", 99, 0, 0))) == errno.EINVAL
        assert write(fd, 0xC0105447, param) == errno.ENOTTY
        assert write(0, number(0x47, 16), param) == errno.ENOTTY
        assert write(333, number(0x47, 16), param) in (errno.EBADF, errno.ENOTTY)
        with open("/dev/shm/vc4lab-plain" + str(os.getpid()), "w+b") as file:
            os.unlink(file.name)
            assert write(file.fileno(), number(0x47, 16), param) == errno.ENOTTY
            assert os.fstat(file.fileno()).st_size == 0
        try:
            os.pwrite(fd, b"x", 0)
        except OSError as error:
            assert error.errno == errno.EINVAL
        # a sync file, whose number lies outside of the window
        handle = ioctl(fd, 0xBF, "II", 0, 1)[0]
        sync = ioctl(fd, 0xC1, "IIiI", handle, 1, -1, 0)[2]
        info = bytearray(56)
        assert write(sync, 0xC0383E04, info) == 0
        assert info[:4] != bytes(4) or info[32:36] == bytes([1, 0, 0, 0])

    run_client(device, client)


def many_polls() -> None:
    """Two processes, each with almost as many epoll instances as a process may have."""
    open_card()
    read, write = os.pipe()
    child = os.fork()
    polls = []
    try:
        while len(polls) < 800:
            polls.append(select.epoll())
    except OSError as error:
        assert error.errno == errno.EMFILE
    if child == 0:
        os.read(read, 1)
        os._exit(0)
    os.write(write, b"x")
    assert os.waitpid(child, 0)[1] == 0
    for poll in polls:
        poll.close()
    print(len(polls))


def test_the_supervisor_keeps_copies_beyond_a_process_s_own_limit(device: DrmDevice) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 4096:
        pytest.skip(f"this host allows {before[1]} descriptors")
    usual = 1024, before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    try:
        assert run_client(device, many_polls) == "800\n"
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == usual
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_programs_are_told_when_the_host_has_no_more_descriptors() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))\n"
        "from tests.drm.supervisor.test_limits import many_polls\n"
        "from tests.support.drm_client import run_client\n"
        "from vc4lab.drm.device.device import DrmDevice\n"
        "with DrmDevice(paced=False) as device:\n"
        "    run_client(device, many_polls)\n"
        "    run_client(device, many_polls)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert out.returncode == 0, out.stderr


def test_the_collector_looks_only_at_new_objects_while_programs_run(device: DrmDevice) -> None:
    """At all of them it would look for 10 ms and more, and answers would wait."""
    frozen: list[int] = []
    calls = itertools.count(1)

    def note(_call: object, _answer: object) -> None:
        if next(calls).bit_count() == 1:  # all objects are counted, which takes long
            frozen.append(gc.get_freeze_count())

    device.supervisor.on_call = note

    def client() -> None:
        open_card()

    run_client(device, client)
    assert len(frozen) >= 3
    assert min(frozen) > 10_000
    assert gc.get_freeze_count() == 0
