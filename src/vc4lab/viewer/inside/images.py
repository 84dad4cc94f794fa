"""Pictures that a page shows: frames, overlays, targets of jobs, textures with their levels."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.images.tiling import Tiling, mip_chain
from vc4lab.jobs.texture_views import texture_view
from vc4lab.qpu.program.reader import program_at
from vc4lab.records.texture import MagFilter, MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.v3d.tmu.formats import FORMATS
from vc4lab.viewer.inside.programs import MOST_INSTRUCTIONS, STAGES, drawn, places_of, requests_of
from vc4lab.viewer.inside.session import job_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.viewer.inside.views import JobLists

WIDE = "its colours have 64 bits: they are no picture"


def png(image: Image | None, *, small: bool = False) -> bytes:
    """Return a picture as a PNG file; small: packed as well as it goes. Raises NoSuchPlace for None."""
    if image is None:
        raise NoSuchPlace(WIDE)
    file = BytesIO()
    image.save(file, "PNG", compress_level=9 if small else 1)
    return file.getvalue()


def shown(frame: CapturedFrame) -> bytes:
    """Return the picture of a frame as it was captured, else as it is drawn again.

    Raises NoSuchPlace, CaptureError.
    """
    kept = frame.source.picture
    if isinstance(kept, bytes):
        return kept
    return png(kept if kept is not None else frame.picture)


def target(frame: CapturedFrame, job: int) -> Image | None:
    """Return what a job has drawn. Raises NoSuchPlace, CaptureError."""
    found = job_of(frame, job)
    if not found.draws_colours:
        raise NoSuchPlace(f"job {job} of frame {frame.number} draws no colours")
    return frame.picture_of(found)


class NamedTexture(NamedTuple):
    """A texture of a draw: the program and its request that sample it."""

    stage: str
    request: int
    config: TextureConfig


def textures_of(frame: CapturedFrame, number: int) -> list[NamedTexture]:
    """Return the textures of a draw's programs, each once. Raises NoSuchPlace, CaptureError."""
    draw = drawn(frame, number)
    frame.stage.run(draw.job)
    found: dict[tuple[Any, ...], NamedTexture] = {}
    for stage in STAGES:
        try:
            code, uniforms = places_of(draw, stage)
        except NoSuchPlace:
            continue
        program = program_at(frame.stage.memory, code, limit=MOST_INSTRUCTIONS)
        for request, config in requests_of(frame, program, uniforms):
            found.setdefault(config.parameters(), NamedTexture(stage, request, config))
    return list(found.values())


def textures_document(frame: CapturedFrame, draw: int, lists: JobLists) -> list[dict[str, Any]]:
    """Return a draw's textures with their levels. Raises NoSuchPlace, CaptureError."""
    return [_texture(frame, one, lists) for one in textures_of(frame, draw)]


def _texture(frame: CapturedFrame, one: NamedTexture, lists: JobLists) -> dict[str, Any]:
    config = one.config
    row = FORMATS.get(config.type)
    levels = []
    if row is not None:
        chain = mip_chain(
            config.width, config.height, row.unit_bits, config.levels,
            raster=row.type.raster, block=row.block,
        )  # fmt: skip
        levels = [
            {
                "width": level.width,
                "height": level.height,
                "address": config.base + level.offset & 0xFFFFFFFF,
                "tiling": Tiling(level.tiling).name,
                "bytes": level.size,
            }
            for level in chain
        ]
    view = texture_view(frame.stage.memory.read, config)
    known = next((job for job in frame.jobs if job.moves(config.base)), None)
    file = next((name for name, (view, _at) in lists.textures.items() if view.address == config.base), None)
    return {
        "stage": one.stage,
        "request": one.request,
        "address": config.base,
        "type": row.type.name if row is not None else f"type {config.type}",
        "bits": row.type.bits if row is not None else 0,
        "width": config.width,
        "height": config.height,
        "levels": levels,
        "filters": f"{MagFilter(config.mag_filter).name.lower()}, {_name(MinFilter, config.min_filter)}",
        "wrap": f"{Wrap(config.wrap_s).name.lower()}, {Wrap(config.wrap_t).name.lower()}",
        "cube": config.cube,
        "shows": view is not None,
        "alpha": view is not None and len(view.channels) in (2, 4),
        "drawn_by": 0 if known is None else known.number,
        "file": file,
        "text": config.text(),
    }


def _name(kind: type[MinFilter], code: int) -> str:
    found = kind._value2member_map_.get(code)
    return str(code) if found is None else str(found.name).lower().replace("_", " ")


def texture_png(frame: CapturedFrame, draw: int, number: int, level: int, channels: str) -> bytes:
    """Return a level of a draw's texture as a PNG file. Raises NoSuchPlace, CaptureError."""
    from PIL import Image

    found = textures_of(frame, draw)
    if number >= len(found):
        raise NoSuchPlace(f"draw {draw} has no texture {number}: it has {len(found)}")
    config = found[number].config
    if level >= config.levels:
        raise NoSuchPlace(f"texture {number} has no level {level}: it has {config.levels}")
    view = texture_view(frame.stage.memory.read, config, level)
    if view is None:
        name = TextureType(config.type).name if config.type in FORMATS else f"type {config.type}"
        raise NoSuchPlace(f"{name} is not shown as a picture")
    with Image.open(BytesIO(view.png())) as image:
        has_alpha = len(view.channels) in (2, 4)
        if not has_alpha or channels == "rgba":
            return png(image)
        return png(image.getchannel("A") if channels == "alpha" else image.convert("RGB"))
