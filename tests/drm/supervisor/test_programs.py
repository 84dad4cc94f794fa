# ruff: noqa: F821, F841 - clients are other programs
"""Programs under the supervisor start, end and are killed."""

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.descriptors import open_descriptors
from tests.support.drm_client import run_client
from tests.support.programs import is_alive

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.processes import started


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


def test_a_child_that_had_its_parents_memory_is_read_after_its_exec(
    device: DrmDevice, tmp_path: Path
) -> None:
    """Before it, the child of posix_spawn opens a file with a path that lies in its parent."""

    def client() -> None:
        wanted = os.O_WRONLY | os.O_CREAT
        for number in range(3):
            name = f"{sys.argv[1]}/{number}"
            actions = [(os.POSIX_SPAWN_OPEN, 1, name, wanted, 0o600)]
            child = os.posix_spawn("/bin/echo", ["echo", name], {}, file_actions=actions)
            assert os.waitpid(child, 0)[1] == 0
            with open(name) as file:
                assert file.read() == f"{name}\n"

    run_client(device, client, str(tmp_path))


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
        for _ in range(6000):
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
    assert time.monotonic() - began < 60


SUPERVISOR = """
import os, sys, time
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.processes import started
def listener(self, receive=started.Started.listener):
    if sys.argv[2] == "late" and os.fork() == 0:  # the connection ends later than the listener
        connection = self.connection.fileno()
        os.closerange(0, connection)
        os.closerange(connection + 1, 4096)
        time.sleep(2)
        os._exit(0)
    return receive(self)
started.Started.listener = listener
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


@pytest.mark.parametrize("when", ["at once", "late"])
def test_when_the_supervisor_is_killed_its_programs_end_with_a_sentence(
    device: DrmDevice, tmp_path: Path, when: str
) -> None:
    """Late: the program gets ENOSYS and ends before its keeper sees that the supervisor is gone."""
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, WAITS, when], stdout=subprocess.PIPE, stderr=file
        )
    assert process.stdout is not None
    nodes = process.stdout.readline().decode().strip()
    assert os.path.exists(nodes)
    client = int(process.stdout.readline())
    time.sleep(0.2)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while is_alive(client) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(client)
    while "the device has ended" not in errors.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "the device has ended, so the programs that used it are ended" in errors.read_text()
    while os.path.exists(nodes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(nodes)


def run_until_stopped(device: DrmDevice, folder: Path) -> int:
    """The exit code of a program that runs when the device is stopped."""
    begun = folder / "begun"

    def stop() -> None:
        while not begun.exists():
            time.sleep(0.01)
        device.supervisor.stop()

    threading.Thread(target=stop, daemon=True).start()
    return device.run(["sh", "-c", f"touch {shlex.quote(str(begun))}; exec sleep 100"])


def test_a_stopped_device_ends_programs_without_a_word(
    device: DrmDevice, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    run_until_stopped(device, tmp_path)
    assert time.monotonic() - began < 60
    assert "gone" not in capfd.readouterr().err


def test_two_programs_one_after_the_other_on_one_device(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        view = map_bo(fd, create_bo(fd, 4096), 4096)
        assert view[0:8] == bytes(8)
        view[0:8] = b"leftover"

    run_client(device, client)
    run_client(device, client)


def test_no_supervisor_leaves_files_behind(device: DrmDevice) -> None:
    before = open_descriptors()
    for _ in range(3):
        device.run(["true"])
    assert open_descriptors() <= before + 1
    assert not device.supervisor.tree.root


def test_a_device_that_was_stopped_runs_the_next_program(device: DrmDevice, tmp_path: Path) -> None:
    assert run_until_stopped(device, tmp_path) == 128 + signal.SIGTERM
    assert device.run(["sh", "-c", "exit 4"]) == 4


def test_an_interrupt_before_there_is_a_program_is_the_program_s(device: DrmDevice) -> None:
    device.supervisor.interrupt()
    assert device.run(["sleep", "20"]) == 128 + signal.SIGINT
    assert device.run(["sh", "-c", "exit 4"]) == 4


def test_an_interrupt_while_a_program_starts_slowly(
    device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the program, as it is not a filter that the kernel refuses."""
    slow = tmp_path / "keeper.py"
    begin = "    import resource\n"
    text = started.KEEPER.read_text(encoding="utf-8")
    assert text.count(begin) == 1
    slow.write_text(text.replace(begin, begin + "    time.sleep(0.3)\n"), encoding="utf-8")
    monkeypatch.setattr(started, "KEEPER", slow)
    device.supervisor.interrupt()
    assert device.run(["sleep", "20"]) == 128 + signal.SIGINT
