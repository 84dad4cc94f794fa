"""glmark2 in a booted Debian for a long time: what grows, what hangs?

    make soak-linux MINUTES=60

One machine boots, glmark2-es2-drm draws every scene that it has by default, again and again, on
vc4.ko and the simulated V3D; in each round one run is ended by Ctrl-C in the middle (another scene
each time; ``--pictures DIR`` keeps what it showed), and kmscube's thirtieth picture must be one of
those from the 28th to the 33rd of a run at the start (a last one of the program before may count).
When none runs, both sides are looked at: of this process the resident memory without the guest's
RAM and what the heap has free, descriptors and threads, of the guest what it uses of its RAM, of
the contiguous part of it and in its kernel. From the fifth minute and the third round on nothing
may grow by more than a percent or 4 MiB, from a round's median to another's: in two rounds caches
fill.
The table goes to standard output and to ``benchmarks/soak_linux.json``.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import itertools
import json
import os
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._glmark2 import PROGRAM, SCENES
from benchmarks._soak import ALLOWED_BYTES, ALLOWED_SHARE, WARM_MINUTES
from vc4lab.linux.boots import LinuxPlan
from vc4lab.linux.running import Linux, LinuxStopped
from vc4lab.memory.host import give_back

GROUP = 4
"""Scenes of one glmark2: some give back what others have taken, some only its end does."""
SCENE_SECONDS = 0.3
"""Guest time of a scene."""
WARM_ROUNDS = 2
CUBE, CUBE_FRAMES = "kmscube", 30
NEAR = range(CUBE_FRAMES - 2, CUBE_FRAMES + 4)
CUT_OFF = 0.5
"""Guest time after which the last run of a round gets its Ctrl-C."""
LIMIT = 200.0
"""Guest time within which a group has to end."""
HANG = 1200.0
"""Seconds after which this process gives up and prints where it is."""
BYTES = ("rss", "heap", "own", "guest ram", "guest used", "guest cma", "guest slab", "guest kernel")
JUDGED = (*BYTES[2:3], *BYTES[4:], "descriptors", "threads", "guest processes", "guest files")
"""The guest's RAM in this process grows with each page that Linux touches for the first time."""
ASKED = "cat /proc/meminfo; echo processes: $(ls -d /proc/[0-9]* | wc -l)"
FILES = "echo files: $(cut -f 1 /proc/sys/fs/file-nr)"
_LINE = re.compile(r"^(\w+):\s+(\d+)", re.MULTILINE)
_RESULT = re.compile(r"FPS: (\d+) FrameTime")


def sizes(base: int, size: int) -> tuple[int, int, int]:
    """Of this process: resident bytes, those of no file, those in a range of addresses."""
    rss = own = inside = 0
    within = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            start, end = (int(part, 16) for part in name.split("-"))
            within = start < base + size and base < end
        elif name in ("Rss:", "Anonymous:"):
            found = int(rest.split()[0]) << 10
            if name == "Rss:":
                rss += found
                inside += found if within else 0
            elif not within:
                own += found
    return rss, own, inside


def look(linux: Linux) -> dict[str, float]:
    """Both sides, while nothing runs in the guest.

    What the C library has free on the heap counts as "heap", not as "own": it goes back to the
    host when the V3D is switched off, which may be a moment after this one.
    """
    memory = linux.machine.memory
    rss, before, inside = sizes(memory.base, memory.ram_bytes)
    give_back()
    own = sizes(memory.base, memory.ram_bytes)[1]
    said = linux.run(f"{ASKED}; {FILES}").output
    guest = {name: int(value) << 10 for name, value in _LINE.findall(said)}
    return {
        "guest seconds": linux.machine.seconds,
        "rss": rss,
        "own": own,
        "heap": before - own,
        "guest ram": inside,
        "guest used": guest["MemTotal"] - guest["MemAvailable"],
        "guest cma": guest["CmaTotal"] - guest["CmaFree"],
        "guest slab": guest["Slab"],
        "guest kernel": guest["KernelStack"] + guest["PageTables"] + guest["VmallocUsed"],
        "guest processes": guest["processes"] >> 10,
        "guest files": guest["files"] >> 10,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "frames": linux.machine.frames.rendered,
    }


def runs() -> Iterator[list[str]]:
    """What glmark2 is asked for in a round, one run after another."""
    for first in range(0, len(SCENES), GROUP):
        yield [f"{scene}:duration={SCENE_SECONDS}" for scene in SCENES[first : first + GROUP]]


def draw(linux: Linux, scenes: list[str]) -> list[str]:
    """Draw them; the scenes without a result. Raises LinuxStopped."""
    command = [PROGRAM]
    for scene in scenes:
        command += ["-b", scene]
    done = linux.run(command, seconds=LIMIT)
    lines = [line for line in done.output.splitlines() if _RESULT.search(line)]
    drawn = {line.partition(": FPS")[0] for line in lines}
    if done.code == 0 and len(drawn) == len(scenes):
        return []
    return [f"exit code {done.code}: {done.output.strip().splitlines()[-1:]}", *scenes]


def cut(linux: Linux, turn: int, pictures: Path | None) -> None:
    """A run that Ctrl-C ends. Raises LinuxStopped."""
    scene = SCENES[turn % len(SCENES)]
    try:
        linux.run([PROGRAM, "-b", f"{scene}:duration=60"], seconds=CUT_OFF)
    except LinuxStopped:
        if pictures is not None:
            name = re.sub(r"\W+", "-", scene)
            linux.screen.image.save(str(pictures / f"{turn:03d}-{name}.png"))
        linux.interrupt()


def cube(linux: Linux, frames: int = CUBE_FRAMES) -> str:
    """The digest of a picture that does not depend on the time. Raises LinuxStopped."""
    linux.run([CUBE], frames=frames)
    shown = hashlib.sha256(linux.screen.image.tobytes()).hexdigest()
    linux.interrupt()
    return shown


def cubes(linux: Linux) -> set[str]:
    """The digests of the pictures near that one, all of them out of one run. Raises LinuxStopped.

    Each of several runs may begin with another frame: then one between theirs would be missing.
    """
    shown: list[str] = []

    def keep(_count: int) -> None:
        shown.append(hashlib.sha256(linux.screen.image.tobytes()).hexdigest())

    listeners = linux.machine.frames.listeners
    listeners.append(keep)
    linux.run([CUBE], frames=NEAR.stop)
    listeners.remove(keep)
    linux.interrupt()
    return {shown[number - 1] for number in NEAR}


LOOKS = len(list(runs())) + 1
"""In a round."""


def judge(rows: list[dict[str, float]], warm: float) -> dict[str, dict[str, Any]]:
    """Each figure in the first round after the warm-up and in the last one."""
    later = rows[WARM_ROUNDS * LOOKS :] or rows[-1:]
    steady = [row for row in later if row["minute"] >= warm] or rows[-1:]
    looks = min(LOOKS, max(1, len(steady) // 2))
    result = {}
    for name in (*BYTES, *JUDGED):
        first = statistics.median(row[name] for row in steady[:looks])
        last = statistics.median(row[name] for row in steady[-looks:])
        room = max(first * ALLOWED_SHARE, ALLOWED_BYTES if name in BYTES else 0)
        holds = name not in JUDGED or last - first <= room
        result[name] = {"first": first, "last": last, "holds": holds}
    return result


def soak(
    linux: Linux, minutes: float, pictures: Path | None = None
) -> tuple[list[dict[str, float]], list[str]]:
    """Rounds until the time is up: what was seen after each run, and what failed."""
    begun = time.monotonic()
    rows: list[dict[str, float]] = []
    failed: list[str] = []

    def note(what: str) -> bool:
        row = {"minute": (time.monotonic() - begun) / 60, **look(linux)}
        rows.append(row)
        parts = (f"{n} {v / (1 << 20) if n in BYTES else v:.6g}" for n, v in row.items())
        print(f"{what}: " + "  ".join(parts), flush=True)
        return row["minute"] < minutes

    right = cubes(linux)
    for turn in itertools.count():
        for scenes in runs():
            faulthandler.dump_traceback_later(HANG, exit=True)
            for text in draw(linux, scenes):
                print(f"NO RESULT  {text}", flush=True)
                failed.append(text)
            if not note(scenes[0].partition(":")[0]):
                return rows, failed
        cut(linux, turn, pictures)
        if cube(linux) not in right:
            failed.append(f"{CUBE}: another picture in round {turn}")
            print(failed[-1], flush=True)
        if not note("Ctrl-C"):
            break
    return rows, failed


def main() -> int:
    """Exit code 0 if nothing grew, nothing hung and every scene had a result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._soak_linux")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--append", default="")
    parser.add_argument("--pictures", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    linux = Linux.booted(LinuxPlan(cores=options.cores, append=options.append))
    try:
        rows, failed = soak(linux, options.minutes, options.pictures)
    except LinuxStopped as error:
        print(f"HANGS: {error}")
        print(linux.machine.reporter.summary())
        return 1
    result = judge(rows, min(WARM_MINUTES, options.minutes / 2))
    for name, found in result.items():
        unit = 1 << 20 if name in BYTES else 1
        print(
            f"{name:16s} {found['first'] / unit:10.2f} -> {found['last'] / unit:10.2f}"
            f"{' MiB' if unit > 1 else ''}{'' if found['holds'] else '   GROWS'}"
        )
    print(linux.run("dmesg | grep -i -A 3 -e warning -e error -e oops | tail -n 20").output)
    print(linux.machine.reporter.summary())
    print(f"{rows[-1]['frames']:.0f} jobs in {rows[-1]['guest seconds']:.0f} s of guest time")
    target = Path(__file__).with_name("soak_linux.json")
    target.write_text(json.dumps({"rows": rows, "failed": failed, "result": result}) + "\n")
    return int(bool(failed) or not all(found["holds"] for found in result.values()))


if __name__ == "__main__":
    sys.exit(main())
