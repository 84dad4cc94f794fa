"""The boards around the V3D: guest instructions per second, device accesses, polling, idling.

Straight code is seven ALU instructions and a branch; the other loops are in `_guest.py`.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._guest import A32, A64, HALT, program
from vc4lab.diagnostics import Reporter
from vc4lab.soc.machine import Machine
from vc4lab.soc.result import RunResult, Stop
from vc4lab.soc.slices.pace import Pace

KERNELS = Path(__file__).parents[1] / "tests" / "soc"
TURNS = 2
"""Of each measurement; the best counts."""
LOOP_ACCESSES, POLLS = 2 * 0x40000, 0x100000
CONFIGURATIONS = (
    ("zero", False), ("pi1", False), ("pi2", False), ("pi3", False), ("pi3", True),
)  # fmt: skip
IDLE_SECONDS = 1.5
IDLE = (
    ("listening", "wfi until a key comes"),
    ("event", "wfe until a key comes"),
    ("asleep", "wfi, 60 vsync interrupts a second"),
    ("four", "the same, three more cores in wfe"),
    ("100 Hz", "wfi, 100 timer interrupts a second"),
    ("1000 Hz", "wfi, 1000 timer interrupts a second"),
    ("timer", "polling the timer"),
)


def _machine(image: bytes, board: str = "pi2", wide: bool = False, config: str = "") -> Machine:
    with tempfile.TemporaryDirectory() as folder:
        name = "kernel8.img" if wide else "kernel.img"
        (Path(folder) / name).write_bytes(image)
        (Path(folder) / "config.txt").write_text(config)
        return Machine(folder, board, Reporter())


class _Board:
    """A board in one of its states, and how fast its loops are."""

    def __init__(self, board: str, wide: bool) -> None:
        self.board = board
        self.wide = wide
        self.title = board + (" AArch64" if wide else "")

    def machine(self, loop: str, config: str = "") -> Machine:
        """With a loop of `_guest.py`."""
        base = _machine(HALT, self.board, False).board.peripherals
        return _machine(program(loop, base, self.wide), self.board, self.wide, config)

    def run(self, loop: str, seconds: float = 1000.0) -> tuple[Machine, float]:
        """The machine after a loop, and the seconds that took, the best of some runs."""
        best = float("inf")
        for _ in range(TURNS):
            machine = self.machine(loop)
            if loop == "frame":
                machine.v3d_bridge.switch("domain", True)
            started = time.perf_counter()
            machine.run(seconds=seconds)
            best = min(best, time.perf_counter() - started)
        return machine, best

    def idle(self, loop: str) -> float:
        """CPU seconds in a second of the wall clock, with `--realtime`."""
        machine = self.machine(loop, "fake_vsync_isr=1\n")
        gc.collect()  # machines of earlier rows are not to be taken down while this one is measured
        framebuffer = machine.videocore.framebuffer
        framebuffer.change(width=640, height=480, depth=32)
        framebuffer.allocate()
        machine.pace = Pace()
        machine.run(seconds=0.2)
        started, used = time.perf_counter(), time.process_time()
        result: RunResult = machine.run(seconds=IDLE_SECONDS)
        if result.reason is not Stop.SECONDS:
            raise RuntimeError(f"the guest is not idle: {result.message}")
        return (time.process_time() - used) / (time.perf_counter() - started)


def _four_cores(board: str, wide: bool) -> float:
    """CPU seconds in a guest second of four cores with 2,000 timer interrupts a second each.

    They sleep in wfe, and share a lock.
    """
    image = (KERNELS / ("kernels64" if wide else "kernels") / "four_locks.img").read_bytes()
    machine = _machine(image, board, wide)
    machine.run(seconds=0.2)
    used = time.process_time()
    result = machine.run(seconds=1)
    if result.reason is not Stop.SECONDS:
        raise RuntimeError(f"the four cores do not go on: {result.message}")
    return time.process_time() - used


def _memory_of_a_boot() -> float:
    """MiB resident at most in `vc4lab boot`."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "kernel7.img"
        image.write_bytes(program("frame", 0x3F000000, False))
        arguments = ["vc4lab", "boot", str(image), "--seconds", "1"]
        script = (
            "import runpy, sys\n"
            f"sys.argv = {arguments!r}\n"
            "try: runpy.run_module('vc4lab', run_name='__main__')\n"
            "except SystemExit: pass\n"
            "status = open('/proc/self/status').read()\n"
            "print('peak', status.split('VmHWM:')[1].split()[0])\n"
        )
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        return int(result.stdout.split("peak")[1]) / 1024


def run() -> list[dict[str, Any]]:
    """Rows for `python -m benchmarks`."""
    rows: list[dict[str, Any]] = []

    def row(name: str, value: float, unit: str) -> None:
        rows.append({"name": f"soc: {name}", "value": value, "unit": unit})

    for name, wide in CONFIGURATIONS:
        board = _Board(name, wide)
        title = board.title
        times = []
        for _ in range(5):
            gc.collect()  # takes down the machines before, which takes as long as building one
            started = time.perf_counter()
            _machine(HALT, name, wide).run()
            times.append(time.perf_counter() - started)
        row(f"{title}, machine built and halted", 1e3 * min(times), "ms")
        for loop, what in (("alu", "straight code"), ("memory", "load and store")):
            machine, spent = board.run(loop)
            row(f"{title}, {what}", machine.counter.count / spent / 1e6, "M instructions/s")
        _halted, spent = board.run("polled")
        row(f"{title}, polled register (native)", 1e6 * spent / POLLS, "µs/access")
        _halted, spent = board.run("accesses")
        row(f"{title}, device access (Python)", 1e6 * spent / LOOP_ACCESSES, "µs/access")
        machine, spent = board.run("timer")
        row(f"{title}, polling the timer", machine.seconds / spent, "guest s/s")
        machine, spent = board.run("frame", 20.0)
        row(f"{title}, polling V3D BFC", machine.seconds / spent, "guest s/s")
        if wide:
            machine, spent = board.run("counter")
            row(f"{title}, polling CNTPCT", machine.seconds / spent, "guest s/s")
        for loop, what in IDLE:
            if loop in (A64 if wide else A32) and (loop != "four" or machine.board.cores > 1):
                row(f"{title}, --realtime: {what}", 100 * board.idle(loop), "% of a core")
    for name, wide in (("pi2", False), ("pi3", False), ("pi3", True)):
        title = _Board(name, wide).title
        row(f"{title}, four cores, 8,000 interrupts a second", _four_cores(name, wide), "s/guest s")
    row("pi2, resident memory", _memory_of_a_boot(), "MiB")
    return rows
