"""The board around the V3D: instructions per second, device accesses, polling, start-up."""

from __future__ import annotations

import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.soc.machine import Machine

HALT = 0xEAFFFFFE
TURNS = 0x2000000
ACCESSES = 0x40000


def _program(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


ALU = _program(
    0xE3A00000,  # mov r0, #0
    0xE2800001,  # 1: add r0, r0, #1
    0xE2811003,  # add r1, r1, #3
    0xE0212000,  # eor r2, r1, r0
    0xE0823001,  # add r3, r2, r1
    0xE0824003,  # add r4, r2, r3
    0xE0825003,  # add r5, r2, r3
    0xE3500402,  # cmp r0, #0x2000000
    0x1AFFFFF7,  # bne 1b
    HALT,
)
MEMORY = _program(
    0xE3A00000,  # mov r0, #0
    0xE3A01601,  # mov r1, #0x100000
    0xE5912000,  # 1: ldr r2, [r1]
    0xE0822000,  # add r2, r2, r0
    0xE5812004,  # str r2, [r1, #4]
    0xE2800001,  # add r0, r0, #1
    0xE3500501,  # cmp r0, #0x400000
    0x1AFFFFF9,  # bne 1b
    HALT,
)
ACCESS = _program(
    0xE3A0043F,  # mov r0, #0x3f000000
    0xE2800602,  # add r0, r0, #0x200000
    0xE3A01701,  # mov r1, #0x40000
    0xE5803040,  # 1: str r3, [r0, #0x40]
    0xE5902034,  # ldr r2, [r0, #0x34]
    0xE2511001,  # subs r1, r1, #1
    0x1AFFFFFB,  # bne 1b
    HALT,
)
POLL = _program(
    0xE3A0043F,  # mov r0, #0x3f000000
    0xE2800A03,  # add r0, r0, #0x3000
    0xE5902004,  # 1: ldr r2, [r0, #4]
    0xE3520602,  # cmp r2, #0x200000 (2.1 s)
    0x3AFFFFFC,  # blo 1b
    HALT,
)


def _run(code: bytes) -> tuple[Machine, float]:
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "kernel7.img"
        image.write_bytes(code)
        machine = Machine(image, reporter=Reporter())
        started = time.perf_counter()
        machine.run()
        return machine, time.perf_counter() - started


def run() -> list[dict[str, Any]]:
    """Rows for `python -m benchmarks`."""
    rows: list[dict[str, Any]] = []

    def row(name: str, value: float, unit: str) -> None:
        rows.append({"name": name, "value": value, "unit": unit})

    _run(ALU[:4] + _program(HALT))
    started = time.perf_counter()
    _run(_program(HALT))
    row("soc: machine built and halted", 1e3 * (time.perf_counter() - started), "ms")
    machine, spent = _run(ALU)
    row("soc: ARM straight code", machine.counter.count / spent / 1e6, "M instructions/s")
    machine, spent = _run(MEMORY)
    row("soc: ARM load and store", machine.counter.count / spent / 1e6, "M instructions/s")
    machine, spent = _run(ACCESS)
    row("soc: device access", 1e6 * spent / (2 * ACCESSES), "µs")
    machine, spent = _run(POLL)
    row("soc: polling the timer", machine.seconds / spent, "guest s/s")
    return rows
