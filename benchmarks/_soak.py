"""Programs on one virtual device for a long time: what grows?

    make soak VC4_DRIVER=DIR MINUTES=30

Programs run in turn and together, some are killed, round after round, all under one supervisor.
After each round, when none of them is left, this process is looked at: its resident memory, how
much of that is its own (of no file), the blocks of the memory file, descriptors, GEM handles,
buffers. From the fifth minute on nothing may grow by more than a percent or 4 MiB. Its share of
files that other processes map as well (pss) is shown but not judged: it goes up and down with
whatever else the machine runs. The table goes to standard output and to ``benchmarks/soak.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kms.modes import parse_modes
from vc4lab.drm.setup.host_driver import DRIVERS_PATH, find_driver

GLMARK2 = "glmark2-es2-drm"
SCENES = "build", "texture", "shading", "bump", "ideas", "jellyfish", "shadow", "buffer", "loop"
WARM_MINUTES = 5.0
ALLOWED_SHARE, ALLOWED_BYTES = 0.01, 4 << 20
LOOKS = 3
"""The median of so many looks at the beginning and at the end is compared."""
SETTLE_SECONDS = 5.0
UNITS = {"rss": 1 << 20, "own": 1 << 20, "pss": 1 << 20, "file": 1 << 20}

ROUNDS = """
import os, signal, subprocess, sys, time, json
plan = json.loads(sys.argv[1])
def start(command):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)
def finish(running, seconds, number):
    end = time.monotonic() + seconds
    for child in running:
        try:
            child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, number)
            child.wait()
while True:
    for together, seconds, number in plan:
        finish([start(command) for command in together], seconds, number)
    print("quiet", flush=True)
    if not sys.stdin.readline():
        break
"""
"""Runs under the supervisor; at the end of a round it says so and waits."""


def plan() -> list[tuple[list[list[str]], float, int]]:
    """Programs that run together, for how long, and the signal that ends the others."""
    found: list[tuple[list[list[str]], float, int]] = []

    def add(*together: list[str], seconds: float = 20.0, signal: int = 15) -> None:
        commands = [command for command in together if shutil.which(command[0])]
        if commands:
            found.append((commands, seconds, signal))

    size = [GLMARK2, "-s", "1x1"]
    for scene in SCENES:
        add([*size, "-b", f"{scene}:duration=0.5"])
    off = [*size, "--off-screen", "-b"]
    add([*off, "build:duration=1"], [*off, "terrain:duration=1"], ["kmscube", "--count=200"])
    add([*off, "texture:duration=9"], ["kmscube", "-A"], seconds=1.5, signal=9)
    add(["drm_info"], ["modetest", "-M", "vc4"])
    add(["modetest", "-M", "vc4", "-s", "42:800x600"], seconds=0.5, signal=9)
    return found


def look(device: DrmDevice) -> dict[str, float]:
    """This process and the device, now."""
    rollup = Path("/proc/self/smaps_rollup").read_text().split("\n")
    sizes = {line.split(":")[0]: line.split() for line in rollup if line.endswith("kB")}
    files = list(device.core.files)
    return {
        "rss": int(sizes["Rss"][1]) * 1024,
        "own": int(sizes["Anonymous"][1]) * 1024,
        "pss": int(sizes["Pss"][1]) * 1024,
        "file": device.memory.resident,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "files": len(files),
        "handles": sum(len(file.buffers.objects) for file in files),
        "buffers": len(device.buffers.at),
        "retired": len(device.buffers.retired),
        "threads": threading.active_count(),
        "jobs": device.gpu.jobs,
        "calls": device.supervisor.calls,
    }


class Watch:
    """Looks after each round; ends the programs when the time is up."""

    def __init__(self, device: DrmDevice, minutes: float) -> None:
        self.device = device
        self.minutes = minutes
        self.rows: list[dict[str, float]] = []
        self.begun = time.monotonic()

    def follow(self, quiet: IO[str], go_on: IO[str]) -> None:
        """A thread's work, until the programs are gone."""
        for _ in quiet:
            self._settle()
            row = {"minute": (time.monotonic() - self.begun) / 60, **look(self.device)}
            self.rows.append(row)
            text = "  ".join(f"{name} {value / UNITS.get(name, 1):.6g}" for name, value in row.items())
            print(text, flush=True)
            if row["minute"] >= self.minutes:
                self.device.supervisor.stop()
                return
            go_on.write("\n")
            go_on.flush()

    def _settle(self) -> None:
        """Until the supervisor has seen that the programs are gone: it looks once a second."""
        time.sleep(0.3)
        end = time.monotonic() + SETTLE_SECONDS
        while self.device.core.files and time.monotonic() < end:
            time.sleep(0.1)


def judge(rows: list[dict[str, float]], warm: float) -> dict[str, dict[str, Any]]:
    """Each figure at the end of the warm-up and at the end of all."""
    steady = [row for row in rows if row["minute"] >= warm] or rows[-1:]
    result = {}
    for name in ("rss", "own", "file", "descriptors", "files", "handles", "buffers", "threads"):
        first = statistics.median(row[name] for row in steady[:LOOKS])
        last = statistics.median(row[name] for row in steady[-LOOKS:])
        room = max(first * ALLOWED_SHARE, ALLOWED_BYTES if name in UNITS else 0)
        result[name] = {"first": first, "last": last, "holds": last - first <= room}
    return result


def main() -> int:
    """Exit code 0 if nothing grew."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._soak")
    parser.add_argument("--driver", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    folder = find_driver(os.environ, options.driver)
    if folder is None:
        print(f"VC4_DRIVER={options.driver}: no vc4_dri.so in it")
        return 2
    inside, out = os.pipe()
    back, go_on = os.pipe()
    with DrmDevice(modes=parse_modes("800x600"), paced=False) as device:
        watch = Watch(device, options.minutes)
        ends = os.fdopen(inside), os.fdopen(go_on, "w")
        threading.Thread(target=watch.follow, args=ends, daemon=True).start()
        device.run(
            [sys.executable, "-S", "-c", ROUNDS, json.dumps(plan())],
            environment={**os.environ, DRIVERS_PATH: str(folder)},
            stdin=back, stdout=out, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    result = judge(watch.rows, min(WARM_MINUTES, options.minutes / 2))
    for name, found in result.items():
        unit = UNITS.get(name, 1)
        print(
            f"{name:12s} {found['first'] / unit:10.2f} -> {found['last'] / unit:10.2f}"
            f"{' MiB' if unit > 1 else ''}{'' if found['holds'] else '   GROWS'}"
        )
    target = Path(__file__).with_name("soak.json")
    target.write_text(json.dumps({"rows": watch.rows, "result": result}, indent=1) + "\n")
    return int(not all(found["holds"] for found in result.values()))


if __name__ == "__main__":
    sys.exit(main())
