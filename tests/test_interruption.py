"""Signals that end a run: none is lost, and what ran can go on."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

from vc4lab import Machine, interruption
from vc4lab.drm.recorded.replay import replay
from vc4lab.interruption import Interrupted
from vc4lab.v3d.user_programs.experiment import Experiment

ROOT = Path(__file__).parent.parent
GEARS = ROOT / "examples" / "gears" / "sdcard"
JOBS = Path(__file__).parent / "data" / "vc4-jobs" / "kmscube_smooth"


@pytest.fixture(autouse=True)
def own_handlers():
    """Python's Ctrl-C, also where the suite runs in a script's background; nothing stays."""
    before = {number: signal.getsignal(number) for number in interruption.ENDING}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    interruption._state.__init__()  # type: ignore[misc]


class Sender:
    """Sends this process a signal after a while, from another thread."""

    def __init__(self, seconds: float, number: int = signal.SIGINT) -> None:
        self._seconds, self._number = seconds, number
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _send(self) -> None:
        time.sleep(self._seconds)
        os.kill(os.getpid(), self._number)


def next_signal() -> None:
    """Another one of the same number is not taken for the one before."""
    interruption._state.came = interruption._state.last = 0


def sent_in_a_loop(run: Callable[[], object], times: int, longest: float) -> int:
    """How many signals at random moments of a run do not end it."""
    lost, moments = 0, random.Random(1)
    for _ in range(times):
        next_signal()
        try:
            with Sender(moments.uniform(0, longest)):
                run()
                lost += 1
        except KeyboardInterrupt:
            pass
    return lost


def test_ctrl_c_ends_a_machine_each_time_and_it_runs_on_as_if_nothing_was() -> None:
    undisturbed, machine = Machine(GEARS), Machine(GEARS)
    assert sent_in_a_loop(machine.run, 60, 0.02) == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    frames = machine.frames.count + 3
    machine.run(frames=3)
    undisturbed.run(frames=frames)
    assert machine.screen.image.tobytes() == undisturbed.screen.image.tobytes()


UNRAISABLE = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""A signal may come while a file is opened, which is then left to be closed, and in the callback of
a weak reference, which drops it: the next region raises it again."""


@UNRAISABLE
def test_ctrl_c_ends_jobs_of_a_driver_each_time() -> None:
    interruption.install()

    def jobs() -> None:
        for _ in range(1000):
            replay(JOBS)

    assert sent_in_a_loop(jobs, 20, 0.3) == 0


@UNRAISABLE
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_ctrl_c_ends_a_user_program_each_time(engine: str) -> None:
    from vc4lab.options import GpuOptions
    from vc4lab.qpu.text.assembler import assemble

    code = assemble(":a\n nop\n brr -, a\n nop\n nop\n nop\n").bytes
    Experiment(code, gpu=GpuOptions(engine)).run(2)  # what is imported goes through pytest's parser
    interruption.install()

    def program() -> None:
        for _ in range(1000):
            Experiment(code, gpu=GpuOptions(engine)).run(2)

    assert sent_in_a_loop(program, 5, 0.3) == 0


def test_a_long_job_of_the_interpreter_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "PATIENCE", 0.05)
    interruption.install()
    begin = time.monotonic()
    scene = JOBS.parent / "glmark2_ideas"
    with pytest.raises(Interrupted), Sender(0.3):
        replay(scene, engine="interpreter", threads=1)  # it takes seconds
    assert time.monotonic() - begin < 30


def test_a_region_keeps_the_signal_to_its_end() -> None:
    interruption.install()
    reached = []

    def region() -> None:
        with interruption.deferred():
            with interruption.deferred():
                signal.raise_signal(signal.SIGTERM)
            reached.append("its end")

    with pytest.raises(Interrupted) as caught:
        region()
    assert reached
    assert caught.value.number == signal.SIGTERM


def test_an_owner_is_asked_and_nothing_is_raised(capfd: pytest.CaptureFixture[str]) -> None:
    interruption.install()
    with interruption.owned("a moment\n"):
        assert not interruption.came()
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)  # as a terminal does that is closed
        interruption.look()
        assert interruption.came() == signal.SIGHUP
    assert capfd.readouterr().err == "a moment\n"
    interruption.dealt_with()
    with interruption.deferred():
        pass


def test_a_raise_that_python_drops_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a weak reference's callback, or `__del__`."""
    interruption.install()

    class Dropped:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys, "unraisablehook", lambda _dropped: None)
    dropped = Dropped()
    del dropped
    with pytest.raises(Interrupted), interruption.deferred():
        raise AssertionError("this region is not entered")


def test_the_same_signal_at_once_is_one() -> None:
    interruption.install()

    def region() -> None:
        with interruption.deferred():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Interrupted):
        region()


ENDS_WITH_0 = """
import os, signal
from vc4lab import interruption
signal.signal(signal.SIGINT, signal.default_int_handler)
interruption.install()
try:
{body}
finally:
    os._exit(0)
"""


def ends_at_once(body: str) -> subprocess.CompletedProcess[str]:
    """A process in which a second signal ends what it does; without one the exit code is 0."""
    text = ENDS_WITH_0.format(body=indent(dedent(body), "    "))
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_second_signal_ends_the_process_at_once() -> None:
    done = ends_at_once("""
        forget = interruption.undo_at_end(lambda: os.write(2, b"forgotten"))
        interruption.undo_at_end(lambda: os.write(2, b"the terminal is as before"))
        forget()
        with interruption.deferred():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
    """)
    assert done.returncode == 128 + signal.SIGTERM
    assert "the terminal is as before" in done.stderr
    assert "interrupted again" in done.stderr
    assert "forgotten" not in done.stderr


def test_no_signal_ends_what_writes_a_file() -> None:
    done = ends_at_once("""
        with interruption.owned(), interruption.protected():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        os._exit(7)
    """)
    assert done.returncode == 7


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interruption.install()
    signal.raise_signal(signal.SIGHUP)
    assert not interruption.came()
    interruption.uninstall()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_sleep_ends_when_a_signal_comes() -> None:
    from vc4lab.soc.slices.pace import wait_for

    interruption.install()
    begin = time.monotonic()
    with interruption.owned(), Sender(0.05, signal.SIGTERM):
        wait_for(20.0, [])
    assert time.monotonic() - begin < 10


def test_other_threads_are_left_alone() -> None:
    seen = []

    def work() -> None:
        with interruption.deferred():
            seen.append(interruption._state.depth)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0]
