"""How fast user programs run: a matrix product on twelve QPUs (``examples/qpu/sgemm.qasm``).

Counted in vector instructions of 16 lanes.
The peers are published figures for the same kind of kernel: py-videocore's sgemm on a Raspberry Pi,
and the best open QPU emulator.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.registers import QPUS
from vc4lab.v3d.user_programs.scheduler import UserPrograms

PUBLISHED_SILICON = 220.0
PUBLISHED_EMULATOR = 14.5
"""Million vector instructions a second: py-videocore's sgemm on silicon, the best open emulator."""

SOURCE = Path(__file__).parents[1] / "examples" / "qpu" / "sgemm.qasm"
DEPTH = 1024
COLUMNS = 64
CODE, SPACE = 0x1000, 1 << 20
"""Where the program lies, and the bytes that each QPU's matrices take."""

OUTPUT = SPACE - 4 * 16 * COLUMNS


def prepare(memory: GuestMemory, depth: int) -> tuple[Any, Any]:
    """Put the program and random matrices for each QPU into memory; (A, B)."""
    import numpy as np

    memory.write(CODE, assemble(SOURCE.read_text()).bytes)
    generator = np.random.default_rng(3)
    a = generator.uniform(-1, 1, (QPUS, depth, 16)).astype(np.float32)
    b = generator.uniform(-1, 1, (QPUS, depth, COLUMNS)).astype(np.float32)
    for qpu in range(QPUS):
        base = (qpu + 1) * SPACE
        uniforms = base + 64 * (depth + 1)
        memory.write(base, a[qpu].tobytes())
        memory.set_u32(uniforms, base)
        memory.set_u32(uniforms + 4, depth)
        memory.write(uniforms + 8, b[qpu].tobytes())
        memory.set_u32(uniforms + 8 + 4 * COLUMNS * depth, base + OUTPUT)
    return a, b


def start(programs: UserPrograms, depth: int) -> None:
    """Queue one program for each QPU and run them all."""
    for qpu in range(QPUS):
        programs.request(CODE, (qpu + 1) * SPACE + 64 * (depth + 1), 0)
    programs.settle()


def products(memory: GuestMemory) -> Any:
    """C of each QPU, as (QPU, row, column)."""
    import numpy as np

    tiles = [memory.array((qpu + 1) * SPACE + OUTPUT, 16 * COLUMNS, "f4") for qpu in range(QPUS)]
    return np.array(tiles).reshape(QPUS, COLUMNS, 16).transpose(0, 2, 1)


def measure(threads: int, depth: int = DEPTH, rounds: int = 12) -> tuple[float, float]:
    """(million instructions a second, seconds for the first start)."""
    memory = GuestMemory(64 << 20)
    prepare(memory, depth)
    programs = UserPrograms(memory, Reporter(), GpuOptions(threads=threads))
    begin = time.perf_counter()
    start(programs, depth)
    first = time.perf_counter() - begin
    best = 0.0
    for _ in range(rounds):
        before = programs.instructions
        begin = time.perf_counter()
        for _ in range(4):
            start(programs, depth)
        best = max(best, (programs.instructions - before) / (time.perf_counter() - begin) / 1e6)
    return best, first


def run() -> list[dict[str, Any]]:
    """Rows for one and for two threads, beside the published figures."""
    rows: list[dict[str, Any]] = []
    peers = (("silicon (published)", PUBLISHED_SILICON), ("emulator (published)", PUBLISHED_EMULATOR))
    for threads in (1, 2):
        rate, first = measure(threads)
        for peer, figure in peers:
            rows.append(
                {
                    "name": f"sgemm on {QPUS} QPUs, {threads} thread{'s' * (threads > 1)}",
                    "value": round(rate, 1),
                    "unit": "M instr/s",
                    "peer": peer,
                    "peer_value": figure,
                    "ratio": round(rate / figure, 2),
                    "first_start_seconds": round(first, 3),
                }
            )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
