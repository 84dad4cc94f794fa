# ruff: noqa: F821, N818 - clients are other programs
"""Waiting for jobs: answered where the job ends, or by a timeout, a signal or the program's end."""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_jobs import prepare, run_live

from vc4lab.drm.device import gpu
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.processes.notifications import Listener, Notification
from vc4lab.drm.uapi.results import Later

_NO_ONE: Any = None
"""The thread of a call that is not made."""


def before_jobs(monkeypatch: pytest.MonkeyPatch, what: Callable[[], None]) -> None:
    plain = gpu.run_job

    def run(*args: Any) -> bool:
        what()
        return plain(*args)

    monkeypatch.setattr(gpu, "run_job", run)


def test_the_gpus_thread_answers_who_waits_for_a_job(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without waking the supervisor's, which would cost each frame another turn of it."""
    before_jobs(monkeypatch, lambda: time.sleep(0.02))
    prepare("tri_amd64", tmp_path)
    answers: Counter[str] = Counter()
    plain = Listener.answer

    def answer(listener: Listener, call: Any, result: int) -> bool:
        answers[threading.current_thread().name] += 1
        return plain(listener, call, result)

    woken: list[str] = []
    wake = device.supervisor.wake
    monkeypatch.setattr(Listener, "answer", answer)
    monkeypatch.setattr(
        device.supervisor, "wake", lambda: (woken.append(threading.current_thread().name), wake())
    )

    def client() -> None:
        live = Live(sys.argv[1])
        handle = live.handles[live.colour]
        shared = ioctl(live.fd, 0x2D, "IIi", handle, os.O_RDWR | os.O_CLOEXEC, 0)[2]
        for _ in range(5):
            ioctl(live.fd, 0x41, "QQ", live.submit(), 10**11)
            live.submit()
            ioctl(live.fd, 0x42, "IIQ", handle, 0, 10**11)
            live.submit()
            fcntl.ioctl(shared, 0x40086200, struct.pack("<Q", 1))

    run_live(device, client, str(tmp_path))
    assert device.gpu.jobs == 15
    assert answers["vc4lab-gpu"] == 15
    assert "vc4lab-gpu" not in woken


def test_a_wait_ends_in_time_by_a_signal_and_with_its_program(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare("tri_amd64", tmp_path)
    go = tmp_path / "go"

    def until_told() -> None:
        while not go.exists():
            time.sleep(0.005)

    before_jobs(monkeypatch, until_told)

    def client() -> None:
        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        live = Live(sys.argv[1])
        handle = live.handles[live.colour]
        seqno = live.submit()
        began = time.monotonic()
        assert refused(live.fd, 0x41, "QQ", seqno, 50_000_000) == errno.ETIME
        assert refused(live.fd, 0x42, "IIQ", handle, 0, 50_000_000) == errno.ETIME
        assert refused(live.fd, 0x41, "QQ", seqno + 1, 50_000_000) == errno.ETIME  # no such job yet
        assert time.monotonic() - began >= 0.15
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            ioctl(live.fd, 0x41, "QQ", seqno, 10**11)
        except Alarm:
            print("rang")
        if os.fork() == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            ioctl(live.fd, 0x41, "QQ", seqno, 10**11)
            os._exit(0)
        print("killed", os.waitstatus_to_exitcode(os.wait()[1]))
        later = []
        thread = threading.Thread(
            target=lambda: later.append(refused(live.fd, 0x41, "QQ", seqno + 1, 10**11))
        )
        thread.start()
        threading.Timer(0.1, open, [sys.argv[1] + "/go", "w"]).start()
        ioctl(live.fd, 0x41, "QQ", seqno, 10**11)
        assert os.path.exists(sys.argv[1] + "/go")
        assert not later
        live.submit()
        thread.join()
        assert later == [0]  # waited for a job that came after
        os.unlink(sys.argv[1] + "/go")
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGKILL]).start()
        ioctl(live.fd, 0x41, "QQ", live.submit(), 10**11)
        print("went on")

    text = run_live(device, client, str(tmp_path), expect=None)
    assert text == "rang\nkilled -14\n"
    assert not device.supervisor.waiting
    go.touch()
    while device.gpu.submitted > device.gpu.finished:  # the last job goes on without its program
        time.sleep(0.01)
    device.vc4.let_go()


def test_jobs_that_end_about_when_waits_do(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By timeout or signal, in several threads: two of ours want to answer."""
    choose = random.Random(1)
    before_jobs(monkeypatch, lambda: time.sleep(choose.uniform(0, 0.004)))
    prepare("tri_amd64", tmp_path)
    answers: Counter[int] = Counter()
    plain = Listener.answer

    def answer(listener: Listener, call: Any, result: int) -> bool:
        answers[call.id] += 1
        return plain(listener, call, result)

    monkeypatch.setattr(Listener, "answer", answer)

    def client() -> None:
        import random

        live = Live(sys.argv[1])
        results = []

        def wait(seqno, longest):
            return refused(live.fd, 0x41, "QQ", seqno, longest)

        def work(number):
            choose = random.Random(number)
            for _ in range(60):
                seqno = live.submit()
                results.append(wait(seqno, choose.randrange(1_000_000, 12_000_000)))
                while wait(seqno, 10**11):  # a signal, if another thread may have got it
                    pass

        rang = []
        signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
        work(4)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for thread in threads:
            thread.join()
        assert len(results) == 300
        assert {0, errno.ETIME} <= set(results) <= {0, errno.ETIME, errno.EINTR}, set(results)
        live.finish(live.submit())
        print("done")

    assert run_live(device, client, str(tmp_path)) == "done\n"
    assert not device.supervisor.waiting
    assert max(answers.values()) == 1, "a call was answered twice"


def test_what_another_thread_will_answer_is_looked_after_in_time(device: DrmDevice) -> None:
    """Its timeout is no later than that of what the supervisor answers itself."""
    supervisor, now = device.supervisor, time.monotonic()
    idle = supervisor._pause(now, 60.0, None)
    assert idle > 1000
    for when in (None, lambda _call: None):
        later = Later(lambda: None, now + 0.01, when=when)
        supervisor.waiting.add(Notification(1, 1, 1, ()), _NO_ONE, later)
        assert supervisor._pause(now, 60.0, None) == pytest.approx(10.0)
        (never,) = supervisor.waiting._all()
        assert supervisor.waiting._end(never)
        assert supervisor._pause(now, 60.0, None) == idle


def test_nothing_is_closed_while_another_thread_answers(device: DrmDevice) -> None:
    supervisor = device.supervisor
    order: list[str] = []
    begun = threading.Event()

    class Slow:
        descriptor = os.eventfd(0)

        def answer(self, _call: Any, _result: int) -> None:
            begun.set()
            time.sleep(0.2)
            order.append("answered")

        def close(self) -> None:
            order.append("closed")

    listener: Any = Slow()
    supervisor._poller.register(listener.descriptor)
    supervisor.waiting.listener = listener
    calls: list[Callable[[], None]] = []
    later = Later(lambda: 0, when=calls.append)
    for number in range(2):
        supervisor.waiting.add(Notification(number, 1, 1, ()), _NO_ONE, later)
    first = threading.Thread(target=calls[0])
    first.start()
    assert begun.wait(60)
    supervisor._close_listener()
    first.join()
    calls[1]()
    os.close(Slow.descriptor)
    supervisor.waiting.clear()
    assert order == ["answered", "closed"]
