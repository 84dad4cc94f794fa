"""Every number and word that the Python interface takes has a range, and says so in a sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.supervised import need_supervisor

from vc4lab import DrmDevice, Machine
from vc4lab.diagnostics import Reporter
from vc4lab.drm.input.sink import Input
from vc4lab.drm.kms.modes import modes_of
from vc4lab.drm.objects.memory import GpuMemory
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.recorded.replay import replay
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.ranges import FRAMES, PIN, SECONDS, THREADS, Real, Whole
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.debug.gdb_server import GdbServer
from vc4lab.soc.options import MachineOptions
from vc4lab.v3d.core import V3D
from vc4lab.v3d.user_programs.experiment import Experiment
from vc4lab.v3d.user_programs.scheduler import UserPrograms

ROOT = Path(__file__).parents[1]
HELLO = ROOT / "tests" / "soc" / "kernels" / "hello.img"
JOB = ROOT / "tests" / "data" / "vc4-jobs" / "tri_arm64"
KERNEL8 = ROOT / "examples" / "aarch64_triangle" / "sdcard" / "kernel8.img"
HUGE = 10**30
END = bytes.fromhex("00709e00e7090030") * 3


def machine() -> Machine:
    return Machine(HELLO)


def experiment(**options: Any) -> Experiment:
    return Experiment(END, **options)


def programs(**options: Any) -> UserPrograms:
    return UserPrograms(GuestMemory(), Reporter(), GpuOptions(**options))


CASES: list[tuple[str, Callable[[Any], object], list[object]]] = [
    ("Machine board", lambda v: Machine(HELLO, v), ["x", ""]),
    ("Machine engine", lambda v: Machine(HELLO, engine=v), ["x", "", None, 1]),
    ("Machine caches", lambda v: Machine(HELLO, caches=v), ["x", "", 1]),
    ("run frames", lambda v: machine().run(frames=v), [-1, HUGE, 1.5, "3"]),
    (
        "run seconds",
        lambda v: machine().run(seconds=v),
        [-1, -0.001, float("inf"), float("nan"), 1e30, HUGE**20, "1"],
    ),
    ("drive pin", lambda v: machine().gpio.drive(v, 1), [-1, 54, HUGE, 1.5, "17"]),
    ("drive level", lambda v: machine().gpio.drive(17, v), [-1, 2, HUGE, 0.5, "high"]),
    ("function pin", lambda v: machine().gpio.function(v), [-1, 54, HUGE]),
    ("register", lambda v: machine().cpu.register(v), [-1, 16, HUGE, "r0"]),
    ("register, 64 bit", lambda v: Machine(KERNEL8, "pi3").cpu.register(v), [-1, 32, HUGE]),
    ("GdbServer port", lambda v: GdbServer(machine(), v), [-1, 65536, HUGE, "x"]),
    ("BootExtras address", lambda v: BootExtras(address=v), [-4, 2, 1 << 32, HUGE, "x"]),
    ("BootExtras command line", lambda v: BootExtras(command_line=v), ["x" * 1025]),
    ("V3D engine", lambda v: V3D(GuestMemory(), engine=v), ["x", "", None]),
    ("V3D threads", lambda v: V3D(GuestMemory(), threads=v), [0, -1, 257, HUGE, 1.5, "2"]),
    ("GpuOptions engine", lambda v: GpuOptions(engine=v), ["x", None]),
    ("GpuOptions threads", lambda v: GpuOptions(threads=v), [0, 257, 1.5]),
    ("GpuOptions budget", lambda v: GpuOptions(budget=v), [0, HUGE]),
    ("MachineOptions caches", lambda v: MachineOptions(caches=v), ["x", "", 1]),
    ("UserPrograms engine", lambda v: programs(engine=v), ["x", None]),
    ("UserPrograms threads", lambda v: programs(threads=v), [0, -1, 257, HUGE]),
    ("UserPrograms budget", lambda v: programs(budget=v), [0, -1, HUGE, 1.5]),
    ("Experiment entry", lambda v: experiment(entry=v), [-8, 4, 24, HUGE]),
    ("Experiment threads", lambda v: experiment(threads=v), [0, -1, HUGE]),
    ("Experiment qpus", lambda v: experiment().run(v), [0, -1, 13, HUGE, 1.5]),
    ("replay engine", lambda v: replay(JOB, engine=v), ["x", None]),
    ("replay threads", lambda v: replay(JOB, threads=v), [0, -1, HUGE]),
    ("replay number", lambda v: replay(JOB, number=v), [-1, HUGE, 1.5]),
    ("replay order", lambda v: replay(JOB, order=v), ["x", ""]),
    ("RecordedRun number", lambda v: RecordedRun(JOB, number=v), [-1, HUGE]),
    ("GuestMemory bytes", GuestMemory, [0, -1, HUGE]),
    ("GpuMemory bytes", GpuMemory, [0, -1, HUGE, 1.5, "1"]),
    ("modes", modes_of, ["", "x", "0x0", "640x480@0", "9" * 5000 + "x1", "x" * 5000, [640], [None]]),
    ("key", lambda v: Input().key(v, True), [-1, 0x300, HUGE, 1.5, "a", None]),
    ("button", lambda v: Input().button(v, True), [-1, 0x300, HUGE, 1.5, "left", []]),
    ("motion", lambda v: Input().motion(v, 0), [float("inf"), float("nan"), -1e16, HUGE, "1"]),
    ("motion down", lambda v: Input().motion(0, v), [float("-inf"), float("nan"), None]),
    ("wheel", lambda v: Input().wheel(v), [1.5, HUGE, -HUGE, "1", None]),
]
"""What takes a value, and values that it refuses."""


def drm_device(**options: Any) -> DrmDevice:
    with DrmDevice(**options) as made:
        return made


def run_true(frames: Any, program: Any = ("true",)) -> None:
    with DrmDevice(gpu_memory=1 << 20) as device:
        device.run(program, frames=frames)


DEVICE_CASES: list[tuple[str, Callable[[Any], object], list[object]]] = [
    ("DrmDevice device", lambda v: drm_device(device=v), ["x", "", None]),
    ("DrmDevice gpu_memory", lambda v: drm_device(gpu_memory=v), [0, -1, HUGE, 1.5]),
    ("DrmDevice modes", lambda v: drm_device(modes=v), ["", "x", [640, 480]]),
    ("DrmDevice engine", lambda v: drm_device(engine=v), ["x", None]),
    ("DrmDevice threads", lambda v: drm_device(threads=v), [0, -1, 257]),
    ("DrmDevice pointer", lambda v: drm_device(pointer=v), ["", "touch", None]),
    ("DrmDevice params", lambda v: drm_device(device="xlnx", params={"x": v}), [0]),
    ("DrmDevice run frames", run_true, [0, -1, HUGE, 1.5, "3"]),
    ("DrmDevice run program", lambda v: run_true(None, v), [[], [""], ["", "x"]]),
]


@pytest.mark.parametrize(("make", "values"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_values_that_are_refused(make, values):
    for value in values:
        with pytest.raises((ValueError, TypeError)) as caught:
            make(value)
        assert "vc4lab" in str(caught.traceback[-1].path)
        assert 10 < len(str(caught.value)) < 300


@pytest.mark.parametrize(("make", "values"), [c[1:] for c in DEVICE_CASES], ids=[c[0] for c in DEVICE_CASES])
def test_values_that_a_device_refuses(make, values):
    need_supervisor()
    test_values_that_are_refused(make, values)


def test_values_at_the_edge():
    pi = machine()
    assert pi.run(frames=0).frames == 0
    assert pi.run(seconds=0).seconds == pi.seconds
    for pin in (0, 53):
        pi.gpio.drive(pin, True)
        pi.gpio.drive(pin, None)
    assert replay(JOB, order="bgra", threads=256, number=1).drawn == 1
    BootExtras(address=0xFFFFFFFC)


def test_sentences():
    for allowed, value, text in (
        (THREADS, 0, "threads: 0 is not from 1 to 256"),
        (PIN, -1, "pin: -1 is not from 0 to 53"),
        (SECONDS, float("nan"), "seconds: nan is not from 0 to 1e+09"),
        (FRAMES, 10**40, "frames: 0x1d6329f1c35ca4bfabb9f5610000000000 is not"),
        (Whole("n", 0, 1), 16**100, "n: 0x100000000000000000… is not from 0 to 1"),
        (Real("x", 0, 1), -1e300, "x: -1e+300 is not from 0 to 1"),
    ):
        with pytest.raises(ValueError, match="is not") as caught:
            allowed.check(value)
        assert text in str(caught.value)
    with pytest.raises(TypeError, match="frames must be a whole number, not 'x'"):
        FRAMES.check("x")
    with pytest.raises(TypeError, match="seconds must be a number, not 'x'"):
        SECONDS.check("x")
