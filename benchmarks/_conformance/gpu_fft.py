"""``python -m benchmarks._conformance.gpu_fft DIR``: GPU_FFT's accuracy beside what boards print.

DIR has GPU_FFT's public C sources and shaders (release 3 of raspberrypi/userland's `hello_fft`, or
release 2 of its history). They are compiled as they are, without the two files that talk to the
kernel: memory comes from here, and a transform is started on the simulated QPUs. The figure is
`hello_fft`'s own: the relative rms error of transforms whose inputs it makes itself, so boards
print the same digits each time (`data/fft_accuracy.csv`, with sources).
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy

from benchmarks._conformance.chip import DATA
from vc4lab.diagnostics import Reporter
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.options import GpuOptions
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.scheduler import UserPrograms

SOURCES = ("gpu_fft.c", "gpu_fft_twiddles.c", "gpu_fft_shaders.c")
REVERSE = 1
ARENA = 1 << 20
"""Where the memory of a transform begins."""
BUDGET = 1 << 40
"""Instructions of a program: those of the longest transform are 2^24."""
HOST = """
#include "gpu_fft.h"

static char *arena;
static unsigned bus, room;
static void (*begin)(unsigned code, unsigned uniforms);

void vc4lab_host(void *memory, unsigned address, unsigned size, void (*start)(unsigned, unsigned))
{
    arena = memory, bus = address, room = size, begin = start;
}

int gpu_fft_alloc(int mailbox, unsigned size, struct GPU_FFT_PTR *place)
{
    if (size > room)
        return -3;
    place->vc = bus;
    place->arm.bptr = arena;
    return 0;
}

unsigned gpu_fft_base_exec(struct GPU_FFT_BASE *base, int qpus)
{
    for (int qpu = 0; qpu < qpus; qpu++)
        begin(base->vc_code, base->vc_unifs[qpu]);
    return 0;
}

void gpu_fft_base_release(struct GPU_FFT_BASE *base)
{
}

unsigned gpu_fft_ptr_inc(struct GPU_FFT_PTR *place, int bytes)
{
    unsigned before = place->vc;
    place->vc += bytes;
    place->arm.bptr += bytes;
    return before;
}

void *vc4lab_in(struct GPU_FFT *fft) { return fft->in; }
void *vc4lab_out(struct GPU_FFT *fft) { return fft->out; }
int vc4lab_step(struct GPU_FFT *fft) { return fft->step; }
"""
"""What stands in for the files of GPU_FFT that ask the kernel for memory and for QPUs."""


class Missing(Exception):  # noqa: N818 - nothing went wrong
    """Something that is needed is not there; the message says what."""


@dataclass(frozen=True)
class Figure:
    """One published figure: a batch of transforms of 2^log2 points."""

    release: int
    log2: int
    batch: int
    error: str
    """Parts per million, two digits."""
    source: str


def figures(path: Path = DATA / "fft_accuracy.csv") -> list[Figure]:
    """What boards printed."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Figure(
                int(row["release"]),
                int(row["log2_n"]),
                int(row["batch"]),
                row["rel_rms_err_ppm"],
                row["source"],
            )
            for row in csv.DictReader(file)
        ]


def release_of(folder: Path) -> int:
    """Which release of GPU_FFT a folder has; raises `Missing`."""
    for name in (*SOURCES, "gpu_fft.h"):
        if not (folder / name).is_file():
            raise Missing(f"{folder} is not GPU_FFT's folder: there is no {name}")
    text = (folder / "gpu_fft.h").read_text(encoding="utf-8", errors="replace")
    found = re.search(r'"GPU_FFT" release (\d+)', text)
    if found is None:
        raise Missing(f"{folder / 'gpu_fft.h'} does not say which release it is of")
    return int(found[1])


class Transforms:
    """GPU_FFT compiled for this machine, with simulated memory and QPUs under it."""

    def __init__(self, folder: Path, engine: str, unknowns: Unknowns = DEFAULT_UNKNOWNS) -> None:
        self.memory = GuestMemory()
        self.programs = UserPrograms(
            self.memory, Reporter(), GpuOptions(engine=engine, unknowns=unknowns, budget=BUDGET)
        )
        with tempfile.TemporaryDirectory() as place:
            self.library = ctypes.CDLL(str(compiled(folder, Path(place))))
        for name, result in (("in", ctypes.c_void_p), ("out", ctypes.c_void_p)):
            getattr(self.library, f"vc4lab_{name}").restype = result
        start = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_uint)
        self._start = start(lambda code, uniforms: self.programs.request(code, uniforms, 0))
        self.library.vc4lab_host(
            ctypes.c_void_p(self.memory.base + ARENA), ARENA, MEMORY_SIZE - ARENA, self._start
        )

    def error(self, log2: int, batch: int) -> float:
        """hello_fft's relative rms error of a batch of inverse transforms."""
        info = ctypes.c_void_p()
        if self.library.gpu_fft_prepare(0, log2, REVERSE, batch, ctypes.byref(info)):
            raise Missing(f"no transform of 2^{log2} points, or no memory for {batch} of them")
        points, step = 1 << log2, self.library.vc4lab_step(info)
        for job in range(batch):
            data = self._data(self.library.vc4lab_in(info), step * job, points)
            data[:] = 0
            frequency = (job + 1) & (points // 2 - 1)
            data[frequency] += 0.5
            data[-frequency % points] = data[frequency].real
        self.library.gpu_fft_execute(info)
        self.programs.settle()
        if self.programs.waiting:
            raise Missing(f"a transform does not end: {self.programs.waiting}")
        whole = wrong = 0.0
        for job in range(batch):
            data = self._data(self.library.vc4lab_out(info), step * job, points)
            frequency = (job + 1) & (points // 2 - 1)
            wave = numpy.cos(2 * numpy.pi * frequency * numpy.arange(points) / points)
            whole += float((wave**2).sum())
            wrong += float(((wave - data.real.astype(float)) ** 2).sum())
            wrong += float((data.imag.astype(float) ** 2).sum())
        return float(numpy.sqrt(wrong / whole))

    def _data(self, address: int, first: int, points: int) -> numpy.ndarray:
        """The complex numbers of one transform, in guest memory."""
        at = address - self.memory.base + 8 * first
        return self.memory.array(at, points, numpy.complex64)


def compiled(folder: Path, place: Path) -> Path:
    """A library of the sources and of `HOST`; raises `Missing` with the compiler's words."""
    host, library = place / "host.c", place / "fft.so"
    host.write_text(HOST, encoding="utf-8")
    command = ["cc", "-w", "-O1", "-shared", "-fPIC", f"-I{folder}", f"-o{library}", str(host)]
    command += [str(folder / name) for name in SOURCES]
    try:
        done = subprocess.run([*command, "-lm"], capture_output=True, text=True)
    except OSError as error:
        raise Missing(f"the C compiler cc cannot be started: {error.strerror}") from None
    if done.returncode:
        raise Missing(f"GPU_FFT's sources do not compile:\n{done.stderr[-1000:]}")
    return library


def table(rows: Sequence[tuple[Figure, float]]) -> str:
    """Published figures beside ours."""
    lines = ["release  points  batch  boards  here  (relative rms error, parts per million)"]
    for figure, error in rows:
        here = f"{1e6 * error:.2g}"
        same = "" if float(here) == float(figure.error) else "  differs"
        lines.append(
            f"{figure.release:7}  {'2^' + str(figure.log2):>6}  {figure.batch:5}  "
            f"{float(figure.error):6g}  {float(here):4g}{same}  {figure.source}"
        )
    equal = sum(float(f"{1e6 * error:.2g}") == float(figure.error) for figure, error in rows)
    return "\n".join([*lines, f"{equal} of {len(rows)} figures are equal in both digits."])


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """0: every figure is as published."""
    parser = argparse.ArgumentParser(prog="make conformance-fft", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--largest", type=int, default=22, help="log2 of the most points")
    parser.add_argument("--engine", default="jit", choices=["jit", "interpreter"])
    parser.add_argument("--unknown", action="append", default=[], metavar="NAME=CHOICE")
    options = parser.parse_args(arguments)
    rows = []
    try:
        unknowns = DEFAULT_UNKNOWNS.with_(**dict(one.split("=", 1) for one in options.unknown))
        for folder in options.folders:
            release = release_of(folder)
            transforms = Transforms(folder, options.engine, unknowns)
            for figure in figures():
                if figure.release == release and figure.log2 <= options.largest:
                    rows.append((figure, transforms.error(figure.log2, figure.batch)))
    except (Missing, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    say(table(rows))
    return 0 if all(float(f"{1e6 * e:.2g}") == float(f.error) for f, e in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
