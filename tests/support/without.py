"""What a process draws and executes, as JSON: run as a program, with pieces left out or not.

Arguments are names of recorded runs, whose last job may be drawn again, of loops in which a guest
waits, or of test kernels. Of each: a digest of the
result (all buffers after each job; time and registers), and one of how it came about (machine code;
what threads share; slices of the cores).
"""

import hashlib
import json
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from tests.soc.slices.test_rest import IDLE, look

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.simd import NativeModule
from vc4lab.soc.machine import Machine
from vc4lab.v3d.core import V3D

KERNELS = Path(__file__).parents[1] / "soc" / "kernels"
RUNS = Path(__file__).parents[1] / "data" / "vc4-jobs"
TWO_THREADS = "two threads: "
"""Before the name of a run that two threads draw."""
AGAIN = "again: "
"""Before the name of a run whose last job is drawn until its pipelines are as they stay."""
SECONDS = 60

IMAGES: WeakKeyDictionary[NativeModule, bytes] = WeakKeyDictionary()
"""The object files of modules, which keep none."""


def buffers(v3d: V3D, run: RecordedRun) -> str:
    """A digest of all buffers after each job of a run, which this draws."""
    found = hashlib.sha256()
    for job in run.jobs:
        run_job(v3d, job.build(run.memory))
        assert job.submit is not None
        for buffer in job.submit.buffers:
            found.update(run.memory.read(buffer.address, buffer.size))
    return found.hexdigest()


def drawn(name: str, images: list[bytes]) -> tuple[str, str]:
    """Of a run of recorded jobs; `images` gets all machine code."""
    images.clear()
    reporter = Reporter()
    run = RecordedRun(RUNS / name, reporter)
    v3d = V3D(run.memory, reporter, threads=1)
    return buffers(v3d, run), hashlib.sha256(b"".join(images)).hexdigest()


def drawn_again(name: str) -> tuple[str, str]:
    """Of a run whose last job comes again until its pipelines stay; their code."""
    reporter = Reporter()
    run = RecordedRun(RUNS / name.removeprefix(AGAIN), reporter)
    v3d = V3D(run.memory, reporter, threads=1)
    first = buffers(v3d, run)
    made = v3d.frames.preparer._draws.pipelines.made
    last, end = run.jobs[-1].build(run.memory), time.monotonic() + SECONDS
    while not all(each.pipeline.thorough for each in made.values()):
        run_job(v3d, last)
        assert time.monotonic() < end
    images = b"".join(IMAGES[each.pipeline.module] for each in made.values())
    return first + buffers(v3d, run), hashlib.sha256(images).hexdigest()


def shared(name: str) -> tuple[str, str]:
    """Of a run of recorded jobs with two threads; what they may do together."""
    reporter = Reporter()
    run = RecordedRun(RUNS / name.removeprefix(TWO_THREADS), reporter)
    v3d = V3D(run.memory, reporter, threads=2)
    digest = buffers(v3d, run)
    stage = v3d.binning.coordinates.shaders
    ways = stage.sharing.state.shade != 0, stage.sharing.team.state.setaffinity != 0
    return digest, str(ways)


def waited(name: str) -> tuple[str, str]:
    """Of a guest that waits for two seconds."""
    board, words = IDLE[name]
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "kernel.img"
        image.write_bytes(struct.pack(f"<{len(words)}I", *words))
        machine = Machine(image, board)
    machine.run(seconds=2)
    return repr(look(machine)), str(machine.turns.slices)


def taken_turns(name: str) -> tuple[str, str]:
    """Of a guest whose cores share a lock, or poll; how many of their turns are native code."""
    machine = Machine(KERNELS / f"{name}.img", "pi2")
    machine.run(seconds=0.05)
    cores = [(cpu.pc, cpu.state(), cpu.exceptions_taken) for cpu in machine.cores]
    result = cores, machine.clock.now, machine.counter.count, machine.turns.slices
    return repr(result), str(machine.turns.native_slices > 0)


def main(names: list[str]) -> dict[str, tuple[str, str]]:
    """Of each name its result and how that came about."""
    images: list[bytes] = []
    plain = NativeModule.__init__

    def noting(module: NativeModule, name: str, image: bytes, *rest: Any) -> None:
        images.append(image)
        IMAGES[module] = image
        plain(module, name, image, *rest)

    NativeModule.__init__ = noting  # type: ignore[method-assign]
    found = {}
    for name in names:
        if name in IDLE:
            found[name] = waited(name)
        elif (KERNELS / f"{name}.img").exists():
            found[name] = taken_turns(name)
        elif name.startswith(AGAIN):
            found[name] = drawn_again(name)
        else:
            found[name] = shared(name) if name.startswith(TWO_THREADS) else drawn(name, images)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
