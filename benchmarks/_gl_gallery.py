"""`make gallery`, OpenGL programs: glmark2's scenes through `vc4lab gl` beside llvmpipe's frames.

A scene's calls are traced once, while llvmpipe draws; then llvmpipe and `vc4lab gl` draw the same
calls, so that both pictures are of the same time. Scenes of which the vc4 driver's jobs are
recorded (tests/data/vc4-jobs) are drawn a third way, as they were recorded: the first frame, which
depends on no clock.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

from benchmarks._glmark2 import SCENES as DEFAULT_SCENES
from benchmarks._llvmpipe import SCENES as RECORDED
from benchmarks._llvmpipe import Llvmpipe, Trace
from vc4lab.drm.recorded.replay import replay

RUNS = Path(__file__).resolve().parent.parent / "tests" / "data" / "vc4-jobs"
MORE_SCENES = (
    "clear",
    "texture:texgen=true:texture-filter=linear",
    "bump:bump-render=normals-tangent",
    "effect2d:kernel=1,1,1;1,1,1;1,1,1;",
    "pulsar:light=true:quads=5:texture=true",
)
"""Of no default list, drawn as well."""
SCENES = (*DEFAULT_SCENES, *MORE_SCENES)
SECONDS = 0.7
"""That a scene is traced; llvmpipe draws as fast as it can."""
PART = 0.6
"""The frame that is shown, as a part of those."""
FIRST_FRAME = "job0002"
NO_FRAME = frozenset(["glmark2_texture_texture-filter_mipmap", "glmark2_ideas", "glmark2_clear"])
"""Recorded runs that end before the scene's first frame, or whose first frame is black."""
TIMEOUT = 600


@dataclass
class GlExhibit:
    """A scene, its pictures by what drew them, and how far they are from llvmpipe's, in words."""

    name: str
    pictures: dict[str, Image.Image]
    measured: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        peer = self.pictures.get(LLVMPIPE)
        for name, picture in self.pictures.items():
            if peer is not None and name != LLVMPIPE:
                self.measured[name] = far_from(picture, peer)


OURS, LLVMPIPE, VC4 = "vc4lab gl", "llvmpipe", "vc4 driver's jobs"


def through_our_driver(trace: Trace, call: int) -> Image.Image | None:
    """The picture of one frame of a trace, drawn by `vc4lab gl`."""
    prefix = trace.path.parent / "ours-"
    for old in trace.path.parent.glob("ours-*.png"):
        old.unlink()
    replayer = ["eglretrace", "-s", str(prefix), "-S", f"{call}-{call}/frame", str(trace.path)]
    command = [sys.executable, "-m", "vc4lab", "gl", "--headless", "--", *replayer]
    done = subprocess.run(
        command, env=trace.peer.environment, capture_output=True, text=True,
        timeout=TIMEOUT, check=False,
    )  # fmt: skip
    found = list(trace.path.parent.glob("ours-*.png"))
    if done.returncode or not found:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        print(f"  vc4lab gl: exit code {done.returncode}: {lines[-1] if lines else ''}", flush=True)
    if not found:
        return None
    with Image.open(found[0]) as image:
        return image.convert("RGB")


def frame_calls(trace: Trace) -> list[int]:
    """The calls that show frames."""
    done = subprocess.run(
        ["apitrace", "dump", "--color=never", "--calls=*/frame", str(trace.path)],
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    return [int(number) for number in re.findall(r"^(\d+) ", done.stdout, re.MULTILINE)]


def same_time(peer: Llvmpipe, scene: str, part: float, seconds: float) -> dict[str, Image.Image]:
    """A frame of a scene by llvmpipe and by our driver."""
    with peer.trace(scene, seconds) as trace:
        calls = frame_calls(trace)
        if not calls:
            return {}
        call = calls[int((len(calls) - 1) * part)]
        pictures = {LLVMPIPE: trace.frames(1, call, call).get(call), OURS: None}
        pictures[OURS] = through_our_driver(trace, call)
        return {name: one for name, one in pictures.items() if one is not None}


def exhibits(peer: Llvmpipe, scenes: tuple[str, ...] = SCENES) -> Iterator[GlExhibit]:
    """Scenes by our driver and by llvmpipe."""
    for scene in scenes:
        item = GlExhibit(scene, same_time(peer, scene, PART, SECONDS))
        print(f"{scene}: {item.measured.get(OURS, 'no pictures')}", flush=True)
        yield item


def three_ways(peer: Llvmpipe) -> Iterator[GlExhibit]:
    """First frames: our compiler, the jobs of Mesa's vc4 driver, llvmpipe."""
    for name, scene in RECORDED.items():
        if name in NO_FRAME:
            continue
        jobs: dict[str, Image.Image] = {}
        replay(RUNS / name, on_image=jobs.__setitem__)
        pictures = same_time(peer, scene, 0.0, 0.001)
        pictures[VC4] = jobs[FIRST_FRAME]
        item = GlExhibit(scene, pictures)
        for one, words in item.measured.items():
            print(f"{scene}: {one}: {words}", flush=True)
        ours = pictures.get(OURS)
        if ours is not None:
            item.measured["both drivers"] = far_from(ours, pictures[VC4])
            print(f"{scene}: both drivers: {item.measured['both drivers']}", flush=True)
        yield item


def far_from(ours: Image.Image, peer: Image.Image) -> str:
    """How many pixels of a picture differ from another one's by more than some levels."""
    if ours.size != peer.size:
        return f"sizes differ: {ours.size} and {peer.size}"
    first, second = (numpy.asarray(image).astype(int) for image in (ours, peer))
    far = numpy.abs(first - second).max(axis=-1)
    if not far.any():
        return "identical"
    drawn = max(int((second.max(axis=-1) > 0).sum()), 1)
    shares = ", ".join(f"{100 * int((far > n).sum()) / drawn:.2g} % > {n}" for n in (2, 16))
    return f"{shares}; mean {far.sum() / drawn:.2g}"


def sheet(items: list[GlExhibit], columns: int, names: tuple[str, ...]) -> Image.Image:
    """All pictures of some ways beside each other."""
    width, height, text = 256, 192, 18 + 12 * len(names)
    cell = len(names) * (width + 2) + 12
    rows = -(-len(items) // columns)
    whole = Image.new("RGB", (columns * cell, rows * (height + text)), (24, 26, 27))
    draw = ImageDraw.Draw(whole)
    for number, item in enumerate(items):
        x, y = number % columns * cell, number // columns * (height + text)
        draw.text((x + 4, y + 2), item.name[: 42 * len(names)], fill=(230, 230, 230))
        for line, (name, words) in enumerate(item.measured.items()):
            draw.text((x + 4, y + 14 + 12 * line), f"{name}: {words}", fill=(150, 150, 150))
        for name in names:
            image = item.pictures.get(name)
            if image is not None:
                small = image.resize((width, height), Image.Resampling.LANCZOS)
                whole.paste(small, (x + 2, y + text))
            x += width + 2
    return whole


def write(peer: Llvmpipe | None, folder: Path) -> None:
    """Both contact sheets."""
    if peer is None:
        return
    folder.mkdir(exist_ok=True)
    names = OURS, LLVMPIPE
    sheet(list(exhibits(peer)), 3, names).save(folder / "gl-gallery.png", optimize=True)
    ways = OURS, VC4, LLVMPIPE
    sheet(list(three_ways(peer)), 2, ways).save(folder / "gl-three-ways.png", optimize=True)
    print(f"written: {folder / 'gl-gallery.png'}, {folder / 'gl-three-ways.png'}")
