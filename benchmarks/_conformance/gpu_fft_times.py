"""``python -m benchmarks._conformance.gpu_fft_times DIR``: GPU_FFT's times on a Pi 1 beside the model's.

DIR has its public sources, as for `gpu_fft`. A row is a published time of one transform of a batch
(`data/fft_times.csv`, with sources), on 8 QPUs at 250 MHz; the model has no ARM, so single small
transforms, which wait for it, are printed and not judged. The groups are those of docs/timing.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._conformance.chip import DATA
from benchmarks._conformance.gpu_fft import Missing, Transforms
from vc4lab.timing.chip import BadChip, Chip, load_chip
from vc4lab.timing.user_programs import ProgramTiming

BOARD = "pi1"
LIMITS = {"fitted": 0.05, "kept back": 0.15}
"""How far the model may be from a row of a group."""


@dataclass(frozen=True)
class FftTime:
    """A published time: microseconds of one transform of 2^log2 points of a batch."""

    log2: int
    batch: int
    microseconds: float
    group: str
    reliability: str
    source: str


def times(path: Path = DATA / "fft_times.csv") -> list[FftTime]:
    """Read the published times."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            FftTime(
                int(row["log2_n"]),
                int(row["batch"]),
                float(row["microseconds"]),
                row["group"],
                row["reliability"],
                row["source"],
            )
            for row in csv.DictReader(file)
        ]


def timed(transforms: Transforms, log2: int, batch: int, chip: Chip) -> float:
    """Return the model's microseconds of one transform of a batch. Raises `Missing`."""
    timing = ProgramTiming(chip, BOARD)
    with timing.listen(transforms.programs.listeners):
        transforms.error(log2, batch)
    return 1000 * timing.result().milliseconds / batch


def error(row: FftTime, found: float) -> float:
    """The model's error, as a part of what was measured."""
    return found / row.microseconds - 1


def met(row: FftTime, found: float) -> bool:
    """Whether the model is near enough; rows that are printed always are."""
    return row.group not in LIMITS or abs(error(row, found)) <= LIMITS[row.group]


def table(rows: Iterable[tuple[FftTime, float]]) -> str:
    """Published times beside the model's as a table of Markdown: those that contradict it first."""
    lines = [
        "| GPU_FFT on a Pi 1 | of a batch of | board, µs | model, µs | error | source | rel. | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, found in sorted(rows, key=lambda one: met(*one)):
        judged = row.group if met(row, found) else f"{row.group}, not met"
        lines.append(
            f"| 2^{row.log2} | {row.batch} | {row.microseconds:g} | {float(f'{found:.4g}'):g} "
            f"| {error(row, found):+.1%} | {row.source} | {row.reliability} | {judged} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """0: all times were computed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks._conformance.gpu_fft_times", description=__doc__
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--largest", type=int, default=20, help="log2 of the most points of a batch together")
    parser.add_argument("--chip", default="videocore4", help="another chip: a name or a file")
    options = parser.parse_args(arguments)
    try:
        chip = load_chip(options.chip)
        transforms = Transforms(options.folder, "jit")
        found: dict[tuple[int, int], float] = {}
        rows = []
        for row in times():
            if row.batch << row.log2 > 1 << options.largest:
                continue
            place = row.log2, row.batch
            if place not in found:
                found[place] = timed(transforms, *place, chip)
            rows.append((row, found[place]))
    except (Missing, BadChip, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    say(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
