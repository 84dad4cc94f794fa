# ruff: noqa: F821, F841, N818, PT017, RUF059, SIM115 - clients are other programs
"""Programs under the supervisor: everything that processes do with descriptors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice


def test_exit_codes_and_output_pass_through(device: DrmDevice) -> None:
    assert device.run(["sh", "-c", "exit 7"]) == 7
    assert device.run(["sh", "-c", "kill -TERM $$"]) == 128 + signal.SIGTERM
    with pytest.raises(OSError, match="No such file"):
        device.run(["/no/such/program"])


def test_a_program_that_cannot_be_started_is_one_error_and_no_text(
    device: DrmDevice, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        with pytest.raises(OSError, match="No such file"):
            device.run(["no-such-program"])
    assert capfd.readouterr().err == ""


def test_copies_of_a_descriptor_are_the_same_open_file(device: DrmDevice) -> None:
    def client() -> None:
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
            assert libc.syscall(312, os.getpid(), os.getpid(), 0, fd, copy) == 0
        other = open_card()
        assert refused(other, 0x44, "IIQ", handle, 0, 0) == errno.ENOENT
        assert libc.syscall(312, os.getpid(), os.getpid(), 0, fd, other) > 0
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


def test_reading_events_blocks_until_there_is_one(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, fb, view, pitch = show(fd)
        flip(fd, crtc, fb, 77)
        assert events(fd)[0][:2] == (2, 77)
        got = []
        thread = threading.Thread(target=lambda: got.append(events(fd)))
        thread.start()
        time.sleep(0.05)
        assert not got
        flip(fd, crtc, fb, 78)
        thread.join(5)
        assert got[0][0][:2] == (2, 78)

    run_client(device, client)


def test_poll_select_and_epoll_see_events_and_nothing_else(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        read_end, write_end = os.pipe()
        crtc, fb, view, pitch = show(fd)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(read_end, select.POLLIN)
        epoll = select.epoll()
        epoll.register(fd, select.EPOLLIN)
        epoll.register(read_end, select.EPOLLIN)

        def look(seconds):
            return (
                [n for n, _ in poll.poll(seconds * 1000)],
                select.select([fd, read_end], [], [], seconds)[0],
                [n for n, _ in epoll.poll(seconds)],
            )

        began = time.monotonic()
        assert look(0) == ([], [], [])
        assert look(0.05) == ([], [], [])
        assert time.monotonic() - began >= 0.15
        flip(fd, crtc, fb, 1)
        assert look(5) == ([fd], [fd], [fd])
        assert len(events(fd)) == 1
        assert look(0) == ([], [], [])
        os.write(write_end, b"x")
        assert look(5) == ([read_end], [read_end], [read_end])
        flip(fd, crtc, fb, 2)
        time.sleep(0.05)
        assert [set(found) for found in look(5)] == [{fd, read_end}] * 3
        events(fd)
        os.read(read_end, 1)
        threading.Timer(0.05, os.write, [write_end, b"y"]).start()
        assert poll.poll(5000) == [(read_end, select.POLLIN)]
        epoll.unregister(fd)
        flip(fd, crtc, fb, 3)
        time.sleep(0.05)
        assert [n for n, _ in epoll.poll(0)] == [read_end]

    run_client(device, client)


def test_a_read_that_does_not_block_says_so(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card(flags=os.O_RDWR | os.O_NONBLOCK)
        try:
            os.read(fd, 1024)
        except BlockingIOError:
            print("again")

    assert run_client(device, client) == "again\n"


def test_a_signal_reaches_a_program_that_waits(device: DrmDevice) -> None:
    def client() -> None:
        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        fd = open_card()
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        began = time.monotonic()
        try:
            os.read(fd, 1024)
        except Alarm:
            assert 0.05 < time.monotonic() - began < 3
            print("rang")

    assert run_client(device, client) == "rang\n"


def test_many_signals_do_no_harm(device: DrmDevice) -> None:
    def client() -> None:
        rang = []
        signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        fd = open_card()
        for _ in range(2000):
            handle = create_bo(fd, 4096)
            ioctl(fd, 0x09, "II", handle, 0, direction=1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert rang

    run_client(device, client)


def test_a_signal_of_the_process_interrupts_one_thread_only(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        results = []

        def wait(name):
            handle = ioctl(fd, 0xBF, "II", 0, 0)[0]
            held, place = buffer(struct.pack("<I", handle))
            end = time.monotonic_ns() + 10**9
            results.append((name, refused(fd, 0xC3, "QqIIII", place, end, 1, 2, 0, 0)))

        def ring(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, ring)
        other = threading.Thread(target=wait, args=("other",))
        other.start()
        time.sleep(0.1)  # so that it is looked at first
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            wait("main")
        except KeyboardInterrupt:
            results.append(("main", "rang"))
        other.join()
        assert results == [("main", "rang"), ("other", errno.ETIME)], results

    run_client(device, client)


def test_what_a_killed_process_held_is_freed(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        child = os.fork()
        if child == 0:
            other = open_card()
            for _ in range(10):
                view = map_bo(other, create_bo(other, 1 << 20), 1 << 20)
                view[0:4] = b"data"
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        for _ in range(300):
            try:
                handles = [create_bo(fd, 200 << 20) for _ in range(2)]
                break
            except OSError:
                time.sleep(0.01)
        else:
            raise AssertionError("the memory never came back")

    run_client(device, client)


def test_children_left_behind_end_with_the_program(device: DrmDevice) -> None:
    began = time.monotonic()
    code = device.run(
        ["sh", "-c", "trap '' TERM; (sleep 100 & sleep 100) & exit 3"], stdout=subprocess.DEVNULL
    )
    assert code == 3
    assert time.monotonic() - began < 20


SUPERVISOR = """
import os, sys
from vc4lab.drm.device.device import DrmDevice
with DrmDevice() as device:
    write = device.supervisor.tree.write
    device.supervisor.tree.write = lambda: (write(), print(device.supervisor.tree.root, flush=True))
    device.run([sys.executable, "-S", "-c", sys.argv[1]])
"""
WAITS = """
import os, time
fd = os.open("/dev/dri/card0", os.O_RDWR)
print(os.getpid(), flush=True)
os.read(fd, 1024)
time.sleep(100)
"""


def test_when_the_supervisor_is_killed_its_programs_end_with_a_sentence(
    device: DrmDevice, tmp_path: Path
) -> None:
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, WAITS], stdout=subprocess.PIPE, stderr=file
        )
    assert process.stdout is not None
    nodes = process.stdout.readline().decode().strip()
    assert os.path.exists(nodes)
    client = int(process.stdout.readline())
    time.sleep(0.2)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 20
    while _is_alive(client) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(client)
    while "the device is gone" not in errors.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "the device is gone; the programs that used it end, too" in errors.read_text()
    while os.path.exists(nodes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(nodes)


def _is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_stopped_device_ends_programs_without_a_word(
    device: DrmDevice, capfd: pytest.CaptureFixture[str]
) -> None:
    import threading

    threading.Timer(0.5, device.supervisor.stop).start()
    began = time.monotonic()
    device.run(["sleep", "100"])
    assert time.monotonic() - began < 20
    assert "gone" not in capfd.readouterr().err


def test_programs_that_are_killed_while_they_wait_leave_nothing(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGKILL]).start()
        if os.fork() == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.read(fd, 1024)

    for _ in range(3):
        run_client(device, client, expect=None)
    assert not device.supervisor._waiting


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


def test_the_window_can_be_full(device: DrmDevice) -> None:
    def client() -> None:
        files = []
        try:
            while True:
                files.append(open_card("renderD128"))
        except OSError as error:
            assert error.errno == errno.EMFILE
        assert len(files) == 100
        for fd in files:
            os.close(fd)
        open_card()

    run_client(device, client)


def test_two_programs_one_after_the_other_on_one_device(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        view = map_bo(fd, create_bo(fd, 4096), 4096)
        assert view[0:8] == bytes(8)
        view[0:8] = b"leftover"

    run_client(device, client)
    run_client(device, client)


def test_no_supervisor_leaves_files_behind(device: DrmDevice) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        device.run(["true"])
    after = set(os.listdir("/proc/self/fd"))
    assert len(after) <= len(before) + 1
    assert not device.supervisor.tree.root


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


def test_a_device_that_was_stopped_runs_the_next_program(device: DrmDevice) -> None:
    threading.Timer(0.2, device.supervisor.stop).start()
    assert device.run(["sleep", "20"]) == 128 + signal.SIGTERM
    assert device.run(["sh", "-c", "exit 4"]) == 4
