"""`make gallery`: every recorded run drawn by vc4lab beside llvmpipe's picture of the same scene.

Writes out/gallery.html (pictures inside) and out/gallery.png, a contact sheet; and two of OpenGL
programs (`_gl_gallery.py`): out/gl-gallery.png, out/gl-three-ways.png.
"""

from __future__ import annotations

import base64
import html
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

from benchmarks import _gl_gallery
from benchmarks._llvmpipe import SCENES, Llvmpipe, llvmpipe
from vc4lab.drm.recorded.replay import replay

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "tests" / "data" / "vc4-jobs"
OUT = ROOT / "out"

FIRST_FRAME = "job0002"
"""glmark2's first job only clears; the second is the first frame, which depends on no clock."""
NO_FRAME = frozenset(["glmark2_texture_texture-filter_mipmap"])
"""Runs that end before the scene's first frame."""
SEARCHED = "glmark2_ideas"
"""Its first frame is black; the second one's time is unknown, so that the closest is searched."""
SEARCH_SECONDS = 6.0
SEARCH_INTERVAL = 8

_SNAPPED = (
    "Edges: the driver's shader cuts vertex positions to 1/16 pixel, llvmpipe rounds to 1/256, so "
    "that pixels at silhouettes fall to the other side."
)
_HALF = (
    "llvmpipe computes GLSL's mediump in half floats, the driver's shader in 32 bits "
    "(softpipe, which has no half floats, is the closer one to us)."
)
_FRAGMENT_COORDINATE = (
    "Same geometry, other shades: the driver's shader takes gl_FragCoord as whole numbers "
    "(x, 480 - y) where OpenGL asks for pixel centres, and the scene's fract(x * y * 0.0001), "
    "multiplied by 2 or 3 at each step, turns half a pixel into another shade. Computed from the "
    "shader's own coordinates in double precision, our pixels agree."
)
NOTES = {
    "glmark2_buffer_update-method_map": (
        "The wire is exp2(-2 d²) of the distance to an edge, and the driver's shader cuts vertex "
        "positions to 1/16 pixel where llvmpipe rounds to 1/256. Computed in double precision from "
        "vertices cut that way, every one of our pixels agrees to 2 levels."
    ),
    "glmark2_build_use-vbo_false": _SNAPPED,
    "glmark2_build_use-vbo_true": _SNAPPED,
    "glmark2_bump_bump-render_high-poly": _SNAPPED,
    "glmark2_bump_bump-render_normals": (
        f"{_SNAPPED} The normal map is sampled there too, at texel edges moved likewise."
    ),
    "glmark2_conditionals_fragment-steps_5": _FRAGMENT_COORDINATE,
    "glmark2_effect2d_kernel_0_1_0_1_-4_1_0_1_0_": (
        f"{_HALF} At 800 texels a half float misses the right one; our picture is the "
        "convolution in double precision to one level."
    ),
    "glmark2_function_fragment-steps_5": _FRAGMENT_COORDINATE,
    "glmark2_ideas": (
        "llvmpipe's frame of nearly the same moment; the clock of the recorded one is unknown, so "
        "that everything is moved by a pixel or two."
    ),
    "glmark2_loop_fragment-loop_false": _FRAGMENT_COORDINATE,
    "glmark2_loop_fragment-uniform_true": _FRAGMENT_COORDINATE,
    "glmark2_shading_shading_blinn-phong-inf": f"{_SNAPPED} {_HALF}",
    "glmark2_shading_shading_gouraud": _SNAPPED,
    "glmark2_shading_shading_phong": f"Highlights: {_HALF} {_SNAPPED}",
    "glmark2_texture_texture-filter_linear": (
        "Vertices are cut to 1/16 pixel, and the chip filters with fewer bits."
    ),
    "glmark2_texture_texture-filter_nearest": ("Texel edges: vertices cut to 1/16 pixel move them."),
    "glmark2_texture_texture-filter_mipmap": (
        "The recorded jobs only make the texture's levels 1 and 2 (shown); the driver would draw "
        "the scene after them."
    ),
    "kmscube_smooth": "kmscube needs a display device; nothing to compare with.",
    "sdl_testdraw2": "Random rectangles, lines and points; nothing to compare with.",
    "tri_amd64": "A test of its own: red, green and blue corners.",
    "tri_arm64": "A test of its own: red, green and blue corners.",
}


@dataclass
class Exhibit:
    """A run's picture, the peer's where there is one, and what is to be said about them."""

    name: str
    ours: Image.Image
    peer: Image.Image | None
    measured: str
    note: str


def exhibits(peer: Llvmpipe | None) -> Iterator[Exhibit]:
    """Draw everything, run by run."""
    for path in sorted(p for p in RUNS.iterdir() if (p / "job0001").is_dir()):
        pictures: dict[str, Image.Image] = {}
        replay(path, on_image=pictures.__setitem__)
        last = list(pictures.values())[-1]
        scene = SCENES.get(path.name)
        note = NOTES.get(path.name, "")
        ours, theirs = last, None
        if peer is not None and scene is not None and path.name not in NO_FRAME:
            if path.name == SEARCHED:
                theirs = closest_frame(peer, scene, ours)
            else:
                ours = pictures[FIRST_FRAME]
                theirs = peer.first_frame(scene)
        measured = compared(ours, theirs) if theirs is not None else "no picture to compare with"
        print(f"{path.name}: {measured}", flush=True)
        yield Exhibit(path.name, ours, theirs, measured, note)


def closest_frame(peer: Llvmpipe, scene: str, wanted: Image.Image) -> Image.Image | None:
    """The frame most like `wanted`: among every eighth first, then all around the best of them."""
    with peer.trace(scene, SEARCH_SECONDS) as trace:
        coarse = trace.frames(SEARCH_INTERVAL)
        if not coarse:
            return None
        calls = sorted(coarse)
        best = min(calls, key=lambda call: error(wanted, coarse[call]))
        at = calls.index(best)
        fine = trace.frames(1, calls[max(at - 1, 0)], calls[min(at + 1, len(calls) - 1)])
        return min([coarse[best], *fine.values()], key=lambda image: error(wanted, image))


def differences(a: Image.Image, b: Image.Image) -> numpy.ndarray:
    """The largest difference of the three channels at each pixel."""
    first, second = (numpy.asarray(image.convert("RGB")).astype(int) for image in (a, b))
    largest: numpy.ndarray = numpy.abs(first - second).max(axis=-1)
    return largest


def error(a: Image.Image, b: Image.Image) -> float:
    """Mean difference in levels."""
    return float(differences(a, b).mean()) if a.size == b.size else 255.0


def compared(ours: Image.Image, peer: Image.Image) -> str:
    """How far two pictures are from each other, in words."""
    if ours.size != peer.size:
        return f"sizes differ: {ours.size} and {peer.size}"
    far = differences(ours, peer)
    if not far.any():
        return "identical"
    drawn = max(int((numpy.asarray(peer).max(axis=-1) > 0).sum()), 1)
    shares = ", ".join(
        f"{100 * int((far > level).sum()) / drawn:.2g} % by more than {level}" for level in (2, 16)
    )
    return f"of {drawn} drawn pixels {shares} levels"


def amplified(ours: Image.Image, peer: Image.Image) -> Image.Image | None:
    """The differences eight times as large, as a picture."""
    if ours.size != peer.size:
        return None
    return Image.fromarray(numpy.clip(differences(ours, peer) * 8, 0, 255).astype(numpy.uint8))


def page(items: list[Exhibit]) -> str:
    """The gallery as one HTML file."""
    rows = []
    for item in items:
        cells = [_figure(item.ours, "vc4lab")]
        if item.peer is not None:
            cells.append(_figure(item.peer, "llvmpipe"))
            difference = amplified(item.ours, item.peer)
            if difference is not None:
                cells.append(_figure(difference, "difference × 8"))
        rows.append(
            f"<section><h2>{html.escape(item.name)}</h2><p>{html.escape(item.measured)}. "
            f"{html.escape(item.note)}</p><div>{''.join(cells)}</div></section>"
        )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>vc4lab and llvmpipe</title>'
        "<style>body{background:#181a1b;color:#ddd;font:15px/1.5 sans-serif;max-width:1320px;"
        "margin:2em auto;padding:0 1em}div{display:flex;gap:8px;flex-wrap:wrap}"
        "figure{margin:0;flex:0 1 32%}img{width:100%;height:auto;background:#000}"
        "figcaption,p{color:#aaa}h2{margin-bottom:0;font-size:17px}p{margin:.2em 0 .6em}</style>"
        "<h1>Recorded driver jobs: vc4lab and llvmpipe</h1>"
        "<p>Left: what Mesa's vc4 driver submitted, drawn by vc4lab. Right: the same glmark2 scene "
        "drawn by Mesa's llvmpipe at the same size, first frame and first frame.</p>"
        f"{''.join(rows)}</html>\n"
    )


def _figure(image: Image.Image, caption: str) -> str:
    data = io.BytesIO()
    image.save(data, "PNG", optimize=True)
    source = base64.b64encode(data.getvalue()).decode()
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{source}" '
        f'width="{image.width}" height="{image.height}"><figcaption>{caption}</figcaption></figure>'
    )


def sheet(items: list[Exhibit], columns: int = 3) -> Image.Image:
    """All pairs on one picture."""
    width, height, text = 256, 192, 30
    rows = -(-len(items) // columns)
    whole = Image.new("RGB", (columns * (2 * width + 12), rows * (height + text)), (24, 26, 27))
    draw = ImageDraw.Draw(whole)
    for number, item in enumerate(items):
        x = number % columns * (2 * width + 12)
        y = number // columns * (height + text)
        draw.text((x + 4, y + 2), item.name, fill=(230, 230, 230))
        draw.text((x + 4, y + 14), item.measured, fill=(150, 150, 150))
        for image in (item.ours, item.peer):
            if image is not None:
                small = image.copy()
                small.thumbnail((width, height))
                whole.paste(small, (x + 2, y + text))
            x += width + 2
    return whole


def main() -> int:
    """Write both files."""
    with llvmpipe() as peer:
        _gl_gallery.write(peer, OUT)
        items = list(exhibits(peer))
    OUT.mkdir(exist_ok=True)
    (OUT / "gallery.html").write_text(page(items))
    sheet(items).save(OUT / "gallery.png", optimize=True)
    print(f"written: {OUT / 'gallery.html'}, {OUT / 'gallery.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
