# ruff: noqa: F821, N818, RUF059 - clients are other programs
"""Programs that wait for the device: events, poll and its kin, signals, the end."""

import os
import signal
import threading
import time

from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice


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
        thread.join(60)
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
        assert look(60) == ([fd], [fd], [fd])
        assert len(events(fd)) == 1
        assert look(0) == ([], [], [])
        os.write(write_end, b"x")
        assert look(60) == ([read_end], [read_end], [read_end])
        flip(fd, crtc, fb, 2)
        assert select.select([fd], [], [], 60)[0]
        assert [set(found) for found in look(60)] == [{fd, read_end}] * 3
        events(fd)
        os.read(read_end, 1)
        threading.Timer(0.05, os.write, [write_end, b"y"]).start()
        assert poll.poll(60_000) == [(read_end, select.POLLIN)]
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
            assert time.monotonic() - began > 0.05
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

        def wait(name, seconds):
            handle = ioctl(fd, 0xBF, "II", 0, 0)[0]
            held, place = buffer(struct.pack("<I", handle))
            end = time.monotonic_ns() + seconds * 10**9
            results.append((name, refused(fd, 0xC3, "QqIIII", place, end, 1, 2, 0, 0)))

        def ring(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, ring)
        other = threading.Thread(target=wait, args=("other", 1))
        other.start()
        time.sleep(0.1)  # so that it is looked at first
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            wait("main", 60)
        except KeyboardInterrupt:
            results.append(("main", "rang"))
        other.join()
        assert sorted(results) == [("main", "rang"), ("other", errno.ETIME)], results

    run_client(device, client)


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
    assert not device.supervisor.waiting
