"""Debian's Linux on the simulated Pi 3: its boot, and what programs ask of the kernel, in CPU time.

Needs what `vc4lab linux --setup` brings; without it there are no rows. Programs are made here: they
do one thing so many times, and two counts of it are subtracted, so that starting them is left out.
"""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Iterable
from typing import Any

from vc4lab.drm.setup.places import find_brought
from vc4lab.linux.boots import LinuxBoot, LinuxPlan
from vc4lab.linux.kernels import find_kernel
from vc4lab.linux.running import Linux

GOALS = {"system call": 12.0, "page fault": 30.0, "fork and exit": 15.0}
BOOT_GOALS = {1: 4.0, 4: 6.0}
LOAD_AT = 0x400000
AARCH64, EXECUTABLE, LOADED, READ_EXECUTE = 183, 2, 1, 5
HEADERS = 64 + 56
GETPPID, EXIT, CLONE, WAIT4, MMAP, MADVISE = 173, 93, 220, 260, 222, 233
NO_HUGE_PAGES = 15
SVC, COUNT_DOWN = 0xD4000001, 0xF1000673
"""svc #0; subs x19, x19, #1."""
MINUS_ONE, KEEP, TOUCH, NEXT_PAGE = 0x92800000, 0xAA0003F4, 0xF900029F, 0x91400694
"""movn x0, #0; mov x20, x0; str xzr, [x20]; add x20, x20, #1, lsl #12."""
ROUNDS = 3


def set_register(number: int, value: int) -> list[int]:
    """movz and movk of a number of 32 bits."""
    low, high = value & 0xFFFF, value >> 16
    words = [0xD2800000 | low << 5 | number]
    return words + ([0xF2A00000 | high << 5 | number] if high else [])


def call(number: int, *arguments: int) -> list[int]:
    """A system call."""
    words: list[int] = []
    for register, value in enumerate(arguments):
        words += [MINUS_ONE | register] if value == -1 else set_register(register, value)
    return [*words, *set_register(8, number), SVC]


def program(count: int, before: Iterable[int], body: list[int]) -> bytes:
    """An ELF file that runs `before`, then `body` so many times, then ends."""
    turns = [*body, COUNT_DOWN]
    back = 0x54000001 | (-len(turns) & 0x7FFFF) << 5  # b.ne to the body's begin
    words = [*set_register(19, count), *before, *turns, back, *call(EXIT, 0)]
    code = struct.pack(f"<{len(words)}I", *words)
    size = HEADERS + len(code)
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = identity + struct.pack(
        "<HHIQQQIHHHHHH", EXECUTABLE, AARCH64, 1, LOAD_AT + HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    where = 0, LOAD_AT, LOAD_AT, size, size, 0x1000
    return head + struct.pack("<IIQQQQQQ", LOADED, READ_EXECUTE, *where) + code


def programs(count: int) -> dict[str, bytes]:
    """One for each row."""
    advice = [*set_register(1, count << 12), *set_register(2, NO_HUGE_PAGES)]
    advice += [*set_register(8, MADVISE), SVC]
    memory = [*call(MMAP, 0, count << 12, 3, 0x22, -1, 0), KEEP, *advice]
    child = [0xB4000000 | 2 << 5, 0x14000000 | 1 + len(call(EXIT, 0))]  # cbz x0; b over the exit
    fork = [*call(CLONE, 17, 0, 0, 0, 0), *child, *call(EXIT, 0), *call(WAIT4, -1, 0, 0, 0)]
    return {
        "system call": program(count, (), call(GETPPID)),
        "page fault": program(count, memory, [TOUCH, NEXT_PAGE]),
        "fork and exit": program(count, (), fork),
    }


def seconds_of(linux: Linux, file: bytes) -> float:
    """CPU time of this process while the guest runs a program."""
    octal = "".join(f"\\{byte:03o}" for byte in file)
    done = linux.run(f"printf '{octal}' > /tmp/measured; chmod +x /tmp/measured")
    assert done.code == 0, done.output
    best = float("inf")
    for _ in range(ROUNDS):
        before = time.process_time()
        done = linux.run("/tmp/measured")
        best = min(best, time.process_time() - before)
        assert done.code == 0, done.output
    return best


def seconds_of_boot(boot: LinuxBoot) -> float:
    """CPU time of this process from power to the shell."""
    gc.collect()  # a machine that has gone is circles of objects, with all its RAM
    before = time.process_time()
    boot.power_on()
    return time.process_time() - before


def row(name: str, value: float, unit: str, goal: float) -> dict[str, Any]:
    """With the goal as peer: a ratio above 1 is better than it."""
    peer = {"peer": "goal", "peer_value": goal, "ratio": goal / value}
    return {"name": f"linux: {name}", "value": value, "unit": unit, **peer}


def run() -> list[dict[str, Any]]:
    brought = find_brought(None)
    if brought is None or find_kernel(brought) is None:
        return []
    rows = []
    linux = Linux.booted()
    few, many = {"system call": 10_000, "page fault": 1_000, "fork and exit": 20}, 5
    for name, goal in GOALS.items():
        counts = few[name], few[name] * many
        taken = [seconds_of(linux, programs(count)[name]) for count in counts]
        each = (taken[1] - taken[0]) / (counts[1] - counts[0])
        if name == "fork and exit":
            rows.append(row(name, each * 1e3, "ms of CPU", goal))
        else:
            rows.append(row(name, each * 1e6, "us of CPU", goal))
    del linux
    for cores, goal in BOOT_GOALS.items():
        boot = LinuxBoot(brought, LinuxPlan("pi3", brought.architecture, cores))
        boot.make_root()
        what = "1 core" if cores == 1 else f"{cores} cores"
        spent = min(seconds_of_boot(boot) for _ in range(ROUNDS))
        rows.append(row(f"boot to a shell, {what}", spent, "s of CPU", goal))
    return rows
