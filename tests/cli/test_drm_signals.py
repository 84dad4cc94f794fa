# ruff: noqa: F821 - clients are other programs
"""Ctrl-C and signals while `vc4lab drm` runs a program."""

import contextlib
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.drm.device.test_hangs import LONG, make_endless
from tests.support.drm_client import CLIENT
from tests.support.live_jobs import Live, prepare, shader_index
from tests.support.supervised import need_supervisor

from vc4lab.qpu.text.assembler import assemble

AS_IN_A_TERMINAL = """
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""These tests may be a script's background job, which is started with SIGINT ignored."""


@pytest.fixture(autouse=True)
def _possible() -> None:
    need_supervisor()


def counts() -> None:
    """A program that says how often it was interrupted."""
    count = 0

    def caught(*_: object) -> None:
        nonlocal count
        count += 1

    signal.signal(signal.SIGINT, caught)
    print("ready", flush=True)
    until = time.monotonic() + 120
    while not count and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.4)
    print("interrupted", count, flush=True)
    sys.exit(7)


def sleeps() -> None:
    """A program that does nothing about signals."""
    print("ready", flush=True)
    time.sleep(120)


def shows() -> None:
    """A program that shows one picture after the other."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fd = open_card()
    crtc, fb, view, _ = show(fd)
    for count in range(3000):
        view[:] = bytes([count % 256, 0, 100, 0]) * (len(view) // 4)
        flip(fd, crtc, fb)
        events(fd)
        if count == 5:
            print("ready", flush=True)


@contextlib.contextmanager
def running(
    program: Callable[[], None],
    *options: str,
    before: str = AS_IN_A_TERMINAL,
    helpers: str = CLIENT,
    arguments: tuple[str, ...] = (),
) -> Iterator[subprocess.Popen[str]]:
    """`vc4lab drm` in a process group of its own, at work with the program."""
    client = f"{helpers}\n{textwrap.dedent(inspect.getsource(program))}\n{program.__name__}()\n"
    start = f"import signal\n{before}from vc4lab.cli.main import run\nrun()\n"
    command = [sys.executable, "-c", start, "drm", "--headless", *options, "--"]
    process = subprocess.Popen(
        [*command, sys.executable, "-S", "-c", client, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["Ctrl-C", "to vc4lab alone"])
def test_a_program_is_interrupted_once(send: Callable[[int, int], None]) -> None:
    with running(counts) as process:
        send(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=120)
        assert (process.returncode, out, said) == (7, "interrupted 1\n", "")


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["to the group", "to vc4lab alone"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_the_picture_is_saved_when_a_signal_ends_the_program(
    number: int, code: int, send: Callable[[int, int], None], tmp_path: Path
) -> None:
    shot, film = tmp_path / "shot.png", tmp_path / "film.gif"
    with running(shows, "--screenshot", str(shot), "--record", str(film)) as process:
        send(process.pid, number)
        _, said = process.communicate(timeout=60)
        if number == signal.SIGHUP:  # to the group: the program has it from the terminal as well
            code = process.returncode if process.returncode in (129, 143) else code
        assert (process.returncode, said) == (code, f"picture: {shot}\nrecording: {film}\n")
    assert shot.is_file()
    assert film.is_file()


def draws_for_long() -> None:
    """A program whose jobs take long, one after the other, for more than a minute."""
    live = Live(sys.argv[1])
    live.submit()
    print("ready", flush=True)
    for _ in range(1000):
        last = live.submit()
    live.finish(last)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_job_that_runs_keeps_no_one_waiting(number: int, tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)
    make_endless(tmp_path, 0)
    code = assemble(LONG.format(rounds=(1 << 22) // 5 - 10)).bytes
    (tmp_path / f"{shader_index(tmp_path, 0)}.bin").write_bytes(code)
    helpers = CLIENT + inspect.getsource(Live)
    with running(draws_for_long, helpers=helpers, arguments=(str(tmp_path),)) as process:
        time.sleep(0.5)
        began = time.monotonic()
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 143
        # the job was ended; or it was so early that nothing has been drawn
        assert not said or (said.count("\n") == 1 and ("DRM-016" in said or "DRAW-015" in said))
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_window_does_not_stay_after_a_signal(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with running(shows, "--window") as process:
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=120)
        assert (process.returncode, said) == (128 + number, "")


def test_what_was_ignored_at_the_start_stays_ignored() -> None:
    """nohup, and jobs that scripts start in the background."""
    ignoring = "signal.signal(1, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN)\n"
    with running(sleeps, before=ignoring) as process:
        for number in (signal.SIGHUP, signal.SIGINT):
            os.killpg(process.pid, number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.terminate()
        _, said = process.communicate(timeout=120)
        assert (process.returncode, said) == (128 + signal.SIGTERM, "")


def waits_for_a_pipe() -> None:
    """A program that the kernel keeps waiting, at a place that it found among the nodes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    where = os.open("/sys/class/drm", os.O_DIRECTORY)
    print("ready", flush=True)
    os.open("../../.." + sys.argv[1], os.O_RDONLY, dir_fd=where)


def opens() -> None:
    """A program that opens the device."""
    print("ready", flush=True)
    open_card()


SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


@SIGNALS
def test_signals_end_a_program_that_waits_for_a_pipe(number: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with running(waits_for_a_pipe, arguments=(str(tmp_path / "pipe"),)) as process:
        time.sleep(0.3)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) in ((130, ""), (143, "")), said


@SIGNALS
def test_signals_end_the_command_when_the_device_is_stuck(number: int, tmp_path: Path) -> None:
    """Whatever the thread waits for that serves the programs: here a pipe that it opens."""
    os.mkfifo(tmp_path / "pipe")
    before = f"""
import os
from vc4lab.cli import drm_signals
from vc4lab.drm.device.open_files import OpenFiles
drm_signals.PATIENCE, drm_signals._LAST_PATIENCE = 2.5, 0.5
def stuck(*_):
    os.write(1, b"stuck\\n")
    os.open({str(tmp_path / "pipe")!r}, os.O_RDONLY)
OpenFiles.open = stuck
"""
    with running(opens, before=AS_IN_A_TERMINAL + before) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stuck\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert said == "vc4lab: the device did not answer; the programs are ended\n"
