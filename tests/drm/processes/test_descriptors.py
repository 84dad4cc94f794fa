# ruff: noqa: F821, F841, SIM115 - clients are other programs
"""Descriptors of the device: copied, inherited, passed on, shared by threads."""

import os
import sys
import threading
import time
from pathlib import Path

from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice


def test_copies_of_a_descriptor_are_the_same_open_file(device: DrmDevice) -> None:
    def client() -> None:
        kcmp = {"x86_64": 312, "aarch64": 272}[os.uname().machine]
        fd = open_card()
        handle = create_bo(fd, 4096)
        copies = [
            os.dup(fd),
            fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3),
            fcntl.fcntl(fd, fcntl.F_DUPFD, 950),
            os.dup2(fd, 41, inheritable=False),
        ]
        assert copies[2] >= 950
        assert copies[3] == 41
        for copy in copies:
            assert ioctl(copy, 0x44, "IIQ", handle, 0, 0)[2]
            assert stat.S_ISCHR(os.fstat(copy).st_mode) or copy == 41
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.syscall(kcmp, os.getpid(), os.getpid(), 0, fd, copy) == 0
        other = open_card()
        assert refused(other, 0x44, "IIQ", handle, 0, 0) == errno.EINVAL
        assert libc.syscall(kcmp, os.getpid(), os.getpid(), 0, fd, other) > 0
        os.close(fd)
        assert ioctl(copies[0], 0x44, "IIQ", handle, 0, 0)[2]

    run_client(device, client)


def test_a_forked_child_shares_handles_and_memory(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 8192)
        view = map_bo(fd, handle, 8192)
        child = os.fork()
        if child == 0:
            view[0:5] = b"child"
            other = map_bo(fd, handle, 8192)
            assert other[0:5] == b"child"
            other[4096:4100] = b"more"
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert view[0:5] == b"child"
        assert view[4096:4100] == b"more"

    run_client(device, client)


def test_an_inherited_descriptor_survives_exec(device: DrmDevice) -> None:
    def client() -> None:
        if len(sys.argv) > 1:
            fd = int(sys.argv[1])
            assert stat.S_ISCHR(os.fstat(fd).st_mode)
            print("after exec", ioctl(fd, 0x44, "IIQ", 1, 0, 0)[2] > 0)
            sys.exit(0)
        fd = open_card(flags=os.O_RDWR)
        os.set_inheritable(fd, True)
        assert create_bo(fd, 4096) == 1
        hidden = open_card()
        os.execv(sys.executable, [sys.executable, "-S", sys.argv[0], str(fd)])

    assert "after exec True" in run_client(device, client)


def test_a_descriptor_passed_over_a_socket_is_the_same_open_file(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 4096)
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            os.close(fd)
            fd = socket.recv_fds(theirs, 1, 1)[1][0]
            view = map_bo(fd, handle, 4096)
            view[0:4] = b"sent"
            os._exit(0)
        socket.send_fds(ours, [b"x"], [fd])
        assert os.waitpid(child, 0)[1] == 0
        assert map_bo(fd, handle, 4096)[0:4] == b"sent"

    run_client(device, client)


def test_a_descriptor_in_flight_keeps_its_file(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        handle = create_bo(fd, 4096)
        ours, theirs = socket.socketpair()
        socket.send_fds(ours, [b"x"], [fd])
        os.close(fd)
        time.sleep(0.1)
        fd = socket.recv_fds(theirs, 1, 1)[1][0]
        assert ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2]

    run_client(device, client)


def test_threads_call_at_once(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        wrong = []

        def work():
            for _ in range(200):
                handle = create_bo(fd, 4096)
                view = map_bo(fd, handle, 4096)
                if view[0:8] != bytes(8):
                    wrong.append("not zero")
                view[0:8] = threading.get_ident().to_bytes(8, "little")
                view.close()
                ioctl(fd, 0x09, "II", handle, 0, direction=1)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong

    run_client(device, client)


def test_unrelated_files_and_errors_stay_what_they_are(device: DrmDevice, tmp_path: Path) -> None:
    def client() -> None:
        folder = sys.argv[1]
        place = os.path.join(folder, "file")
        with open(place, "w") as file:
            file.write("text")
        assert os.stat(place).st_size == 4
        assert open(place).read() == "text"
        assert not os.access(os.path.join(folder, "none"), os.R_OK)
        for path in ("/no/such", "/dev/dri/card9", "/sys/class/drm/none", "/dev/dri/card0/x"):
            try:
                os.stat(path)
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                continue
            raise AssertionError(path)
        os.chdir(folder)
        assert os.readlink("/proc/self/cwd")
        view = mmap.mmap(os.open(place, os.O_RDWR), 4)
        assert view[:] == b"text"

    run_client(device, client, str(tmp_path))


def test_device_descriptors_are_no_files(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()

        def gives(action):
            try:
                action()
            except OSError as error:
                return error.errno
            return 0

        assert gives(lambda: os.write(fd, b"x")) == errno.EINVAL
        assert gives(lambda: os.pread(fd, 4096, 0x10000000)) == errno.EINVAL
        assert gives(lambda: os.pwrite(fd, b"x", 0x10000000)) == errno.EINVAL
        assert gives(lambda: os.ftruncate(fd, 0)) == errno.EINVAL
        assert gives(lambda: os.lseek(fd, 0, 0)) == errno.ESPIPE
        assert gives(lambda: mmap.mmap(fd, 4096, offset=0x10000000)) == errno.EINVAL
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
        assert gives(lambda: os.pread(again, 4096, 0x10000000)) == errno.EINVAL
        assert os.readlink(f"/proc/self/fd/{again}") == "/dev/dri/card0"

    run_client(device, client)
