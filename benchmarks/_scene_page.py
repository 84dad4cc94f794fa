"""Recorded scenes on several chips, for docs/scenes.md: tables between its marks, and plots.

``python -m benchmarks._scene_page RECORDED``; RECORDED has a folder of jobs for each scene, as
``vc4lab drm --record-jobs RECORDED/effect2d --modes 800x601 --unpaced --frames 10 -- \
glmark2-es2-drm -b effect2d`` writes it. A picture may take several jobs: the jobs of the last
picture are what is profiled, each among jobs like itself. Times are the model's, so the machine
that this runs on does not matter.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.drm.recorded.replay import replay
from vc4lab.timing.changes import changed, read_setting
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.profile.profiler import Profiler
from vc4lab.timing.profile.result import FrameProfile
from vc4lab.viewer.svg_plots import Bar, Series, alone, bars, line_plot

if TYPE_CHECKING:
    from vc4lab.timing.frames.frame import Frame

DOCS = Path(__file__).parents[1] / "docs"
SCENES = ("effect2d", "shadow", "refract", "jellyfish")
CHIPS = ("videocore4", "cluster", "cluster-2", "cluster-4")
BOARD = "pi3"
SHOWN = 0.05
"""Busiest share from which a module has a row."""
EXERCISE = (
    ("tmu.per_slice", (1, 2), "TMUs of a slice"),
    ("queues.tile_work.depth", (1, 2, 4, 8, 16), "operations that wait for the tile buffer"),
    ("l2.bytes", (16384, 32768, 65536, 131072, 262144), "bytes of the L2 cache"),
)
TILES = ((64, 64), (128, 64), (64, 128), (128, 128))
"""Pixels across and down."""


@dataclass
class Picture:
    """The jobs of a picture of a scene on a chip."""

    jobs: Sequence[FrameProfile]

    @property
    def clocks(self) -> int:
        """Of all jobs, one after the other."""
        return sum(job.timing.clocks for job in self.jobs)

    def total(self, name: str) -> int:
        """Of what the timings count."""
        return sum(int(getattr(job.timing, name)) for job in self.jobs)

    def modules(self) -> dict[str, tuple[int, int, int, int]]:
        """Of each kind of module: how many, and clocks busy and blocked (mean) and busiest."""
        found: dict[str, list[float]] = {}
        for job in self.jobs:
            for share in job.shares:
                row = found.setdefault(share.module, [share.count, 0, 0, 0])
                for place, part in enumerate((share.busy, share.blocked, share.most), 1):
                    row[place] += part * job.timing.clocks
        return {name: (int(a), int(b), int(c), int(d)) for name, (a, b, c, d) in found.items()}

    def bound(self) -> tuple[str, float]:
        """The module that would save most if it were free, and how much faster that would be."""
        saved: dict[str, int] = {}
        for job in self.jobs:
            for one in job.what_if:
                saved[one.module] = saved.get(one.module, 0) + job.timing.clocks - one.clocks
        best = max(saved, key=lambda name: saved[name])
        return best, self.clocks / (self.clocks - saved[best])


def last_picture(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames of the last picture: how many it takes is seen from what repeats in the second
    half of the run."""
    kinds = [(one.width, one.height, len(one.draws), len(one.programs), len(one.binnings)) for one in frames]
    half = len(kinds) // 2
    for count in range(1, half + 1):
        if kinds[-half:] == kinds[-half - count : -count]:
            return frames[-count:]
    return frames[-1:]


def recorded(folder: Path) -> Sequence[Frame]:
    """The last picture of a recorded run."""
    frames: list[Frame] = []
    replay(folder, on_work=lambda _name, found: frames.extend(found))
    if not frames:
        raise SystemExit(f"{folder}: no jobs")
    return last_picture(frames)


def profiled(frames: Sequence[Frame], chip: Chip, *, ask: bool = True) -> Picture:
    """A picture on a chip."""
    profiler = Profiler(chip, BOARD, ask=ask, timelines=False)
    return Picture([profiler.add(str(number), frame) for number, frame in enumerate(frames)])


# -- tables


def work_rows(pictures: Mapping[str, Sequence[Frame]], found: Mapping[str, Picture]) -> list[str]:
    """What each scene draws."""
    rows = ["| scene | jobs | draw calls | vertices | primitives | with pixels, in tiles | quads |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- |")
    for scene, frames in pictures.items():
        binnings = [part for frame in frames for part in frame.binnings]
        calls = sum(len(part.draws) for part in binnings)
        vertices = sum(len(part.vertices) for part in binnings)
        primitives = sum(int(frame.draws["primitives"].sum()) for frame in frames)
        picture = found[scene]
        cells = (
            len(frames), calls, vertices, primitives, picture.total("primitives"),
            picture.total("quads"),
        )  # fmt: skip
        rows.append("| ".join([f"| {scene} ", *(f"{cell} " for cell in cells)]) + "|")
    return rows


def chip_rows(found: Mapping[tuple[str, str], Picture]) -> list[str]:
    """How long each takes, and what bounds it."""
    rows = ["| scene | chip | clocks | ms on a Pi 3 | of one cluster's | bounded by | free |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- |")
    for (scene, chip), picture in found.items():
        one = found[scene, "cluster"].clocks
        module, speedup = picture.bound()
        share = f"{picture.clocks / one:.3f}" if chip != "videocore4" else ""
        milliseconds = sum(job.board(BOARD).milliseconds for job in picture.jobs)
        rows.append(
            f"| {scene} | {chip} | {picture.clocks} | {milliseconds:.3g} | {share} | `{module}` | "
            f"{speedup:.2f} times as fast |"
        )
    return rows


def module_rows(found: Mapping[tuple[str, str], Picture], scene: str) -> list[str]:
    """Clocks by module of a scene on every chip: of the one that is busiest."""
    pictures = {chip: found[scene, chip] for chip in CHIPS}
    modules = {chip: picture.modules() for chip, picture in pictures.items()}
    names = [
        name
        for name in dict.fromkeys(name for one in modules.values() for name in one)
        if any(
            name in modules[chip] and modules[chip][name][3] >= SHOWN * pictures[chip].clocks
            for chip in CHIPS
        )
    ]
    names.sort(key=lambda name: -modules["videocore4"].get(name, (0, 0, 0, 0))[3])
    rows = [f"| {scene}: clocks at work | " + " | ".join(CHIPS) + " |"]
    rows.append("| --- |" + " --- |" * len(CHIPS))
    for name in names:
        cells = []
        for chip in CHIPS:
            count, _, _, most = modules[chip].get(name, (0, 0, 0, 0))
            of = f" (x{count})" if count > 1 else ""
            share = 100 * most / pictures[chip].clocks
            cells.append(f"{most}{of}, {share:.0f} %" if count else "")
        rows.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return rows


# -- plots


def clock_plot(found: Mapping[tuple[str, str], Picture]) -> str:
    """Clocks of each scene on each chip, as shares of those of videocore4."""
    rows = []
    for (scene, chip), picture in found.items():
        share = picture.clocks / found[scene, "videocore4"].clocks
        text = f"{picture.clocks / 1e6:.2f} M, {picture.bound()[0]}"
        rows.append(Bar(f"{scene}, {chip}", (share,), text))
    return bars(rows, 1.05 * max(row.parts[0] for row in rows))


def module_plot(found: Mapping[tuple[str, str], Picture], chip: str) -> str:
    """Busy, blocked and starved shares of the modules of each scene."""
    rows = []
    for scene in SCENES:
        picture = found[scene, chip]
        clocks = picture.clocks
        chosen = sorted(picture.modules().items(), key=lambda one: -one[1][1])[:6]
        for name, (_, busy, blocked, _) in chosen:
            parts = (busy / clocks, blocked / clocks, max(clocks - busy - blocked, 0) / clocks)
            rows.append(Bar(f"{scene}: {name}", parts, f"{100 * parts[0]:.0f} % busy"))
    return bars(rows, 1, ("busy", "blocked", "starved"))


def exercise(pictures: Mapping[str, Sequence[Frame]]) -> Iterator[tuple[str, str, list[str]]]:
    """Of each figure that an architect changes: its name, the plot and rows of a table."""
    chip = load_chip("videocore4")
    for name, values, label in EXERCISE:
        rows = [f"| {label} | " + " | ".join(map(str, values)) + " |"]
        rows.append("| --- |" + " --- |" * len(values))
        series = []
        setting = read_setting(f"{name}={','.join(map(str, values))}", chip)
        for scene, frames in pictures.items():
            clocks = [
                profiled(frames, changed(chip, {(setting.section, setting.key): value}), ask=False).clocks
                for value in setting.values
            ]
            speeds = [clocks[0] / one for one in clocks]
            points = zip(map(float, setting.values), speeds, strict=True)
            series.append(Series(scene, tuple(points)))
            rows.append(f"| {scene} | " + " | ".join(f"{speed:.3f}" for speed in speeds) + " |")
        yield name, line_plot(series, label, f"times as fast as with {values[0]}"), rows


def bigger_tiles(pictures: Mapping[str, Sequence[Frame]]) -> tuple[str, list[str]]:
    """What tiles of other sizes bring: a plot and rows of a table."""
    chip = load_chip("videocore4")
    names = [f"{width} x {height}" for width, height in TILES]
    rows = ["| pixels of a tile | " + " | ".join(names) + " |"]
    rows.append("| --- |" + " --- |" * len(TILES))
    bars_: list[Bar] = []
    for scene, frames in pictures.items():
        found = []
        for width, height in TILES:
            size = {("tile_buffer", "width"): width, ("tile_buffer", "height"): height}
            found.append(profiled(frames, changed(chip, size), ask=False))
        speeds = [found[0].clocks / one.clocks for one in found]
        rows.append(f"| {scene} | " + " | ".join(f"{speed:.3f}" for speed in speeds) + " |")
        seen = [one.total("primitives") for one in found]
        rows.append(f"| its primitives, in tiles | {' | '.join(map(str, seen))} |")
        bars_ += [
            Bar(f"{scene}, {name}", (speed,), f"{speed:.3f} times as fast")
            for name, speed in zip(names, speeds, strict=True)
        ]
    return bars(bars_, 1.05 * max(bar.parts[0] for bar in bars_)), rows


# -- the page


def put(text: str, mark: str, lines: Sequence[str]) -> str:
    """The page with other lines between two marks."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if not pattern.search(text):
        raise SystemExit(f"no mark for {mark}")
    return pattern.sub(lambda _: begin + "\n".join(lines) + "\n" + end, text)


def main() -> None:
    """Writes docs/scenes.md and its plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recorded", type=Path)
    folder = parser.parse_args().recorded
    pictures = {scene: recorded(folder / scene) for scene in SCENES}
    found = {(scene, chip): profiled(pictures[scene], load_chip(chip)) for scene in SCENES for chip in CHIPS}
    page = DOCS / "scenes.md"
    text = page.read_text()
    plain = {scene: found[scene, "videocore4"] for scene in SCENES}
    text = put(text, "work", work_rows(pictures, plain))
    text = put(text, "chips", chip_rows(found))
    modules: list[str] = []
    for scene in SCENES:
        modules += [*module_rows(found, scene), ""]
    text = put(text, "modules", modules[:-1])
    images = DOCS / "images"
    (images / "scenes-clocks.svg").write_text(alone(clock_plot(found)))
    for chip in ("videocore4", "cluster-4"):
        (images / f"scenes-{chip}.svg").write_text(alone(module_plot(found, chip)))
    for name, plot, rows in exercise(pictures):
        short = name.removeprefix("queues.").replace(".", "-").replace("_", "-")
        (images / f"exercise-{short}.svg").write_text(alone(plot))
        text = put(text, name, rows)
    plot, rows = bigger_tiles(pictures)
    (images / "exercise-tiles.svg").write_text(alone(plot))
    page.write_text(put(text, "tiles", rows))


if __name__ == "__main__":
    main()
