"""Mistakes that people make with the V3D and the display, each a small change to a bundled example."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.mistakes import programs
from tests.mistakes.scene import BPOS, CT0CA, CT0EA, CT1CA, CT1EA, Change, Scene, of_tag

from vc4lab.records.control import build

ARM = 0x3FFFFFFF
NV, GL = "triangle", "vertex_shader"
PAGE = 640 * 480 * 4


@dataclass(frozen=True)
class Mistake:
    """One change to an example.

    Attributes
    ----------
    name
        In words.
    change
        Makes it.
    code
        Of the first message, which has to name it.
    words
        What that message has to say.
    example
        The folder.
    others
        Codes of messages that may follow.
    """

    name: str
    change: Change
    code: str
    words: str
    example: str = NV
    others: frozenset[str] = field(default=frozenset())


def fields(record: int, **values: Any) -> Change:
    """Records with other fields."""
    return lambda scene: scene.change(record, **values)


def without(record: int) -> Change:
    """Lists without a record."""
    return lambda scene: scene.remove(record)


def moved(vertex: Callable[[list[float]], list[float]]) -> Change:
    """Other vertices: x, y in 1/16 pixel, z, 1/w, red, green, blue."""
    return lambda scene: scene.vertices(vertex)


def placed(position: Callable[[list[float]], list[float]]) -> Change:
    """Other positions of the GL example."""
    return lambda scene: scene.positions(position)


def shader(**values: int) -> Change:
    """Another shader record."""
    return lambda scene: scene.shader(**values)


def attribute(offset: int, data: bytes) -> Change:
    """Other bytes in the record of the first attribute array."""
    return lambda scene: scene.then(lambda one: one.memory.write(one.shader_place() + 36 + offset, data))


def fragment(text: str, *more: Change) -> Change:
    """Another fragment program."""
    return together(lambda scene: scene.fragment(text), *more)


def coordinate(text: str) -> Change:
    """Another coordinate shader."""
    return lambda scene: scene.shader(cs_code=scene.program(text))


def together(*changes: Change) -> Change:
    """Several changes, for mistakes that take them."""

    def change(scene: Scene) -> None:
        for one in changes:
            one(scene)

    return change


def indexed(kind: int, data: bytes, maximum: int = 2) -> Change:
    """Record 32 instead of 33, with its flush and NOP four bytes on."""

    def change(scene: Scene) -> None:
        place = scene.put(data)
        record = build(32, mode=4, index_type=kind, length=3, address=place, maximum_index=maximum)
        scene.replace(33, lambda _found: record + build(5) + build(1))
        scene.other[CT0EA] = lambda value: value + 4

    return change


def surface(**values: Any) -> Change:
    """Record 113 with other fields; a function gets the value that was there."""

    def made(found: Any) -> bytes:
        new = {name: v(getattr(found.payload, name)) if callable(v) else v for name, v in values.items()}
        return bytes([113]) + found.payload.replace(**new).to_bytes()

    return lambda scene: scene.replace(113, made)


def lost(*registers: int) -> Change:
    """Writes of registers are missing."""
    return lambda scene: scene.lost.update(registers)


def tag(number: int, place: int, value: int) -> Change:
    """Another word in a message to the firmware."""
    return lambda scene: scene.message(number, of_tag(place, value))


def _next_page(scene: Scene) -> None:
    surface(address=lambda old: old + PAGE)(scene)


SHORTS, BYTES = struct.pack("<3H", 0, 1, 2), bytes([0, 1, 2])
MISTAKES = [
    # facing, clipping, units
    Mistake(
        "no face is enabled",
        fields(96, enable_forward=0, enable_reverse=0),
        "CLE-047",
        "no face is enabled",
        others=frozenset({"DRAW-006"}),
    ),
    Mistake(
        "only the other face is enabled", fields(96, enable_reverse=0), "DRAW-006", "enables forward-facing"
    ),
    Mistake("the other face, GL", fields(96, enable_reverse=0), "DRAW-006", "1 of 1 triangle faces away", GL),
    Mistake(
        "clockwise is turned over",
        fields(96, enable_forward=0, clockwise=1),
        "DRAW-006",
        "reverse-facing ones only, whose corners go clockwise",
        NV,
    ),
    Mistake("the clip window is empty", fields(102, width=0, height=0), "CLE-026", "0 x 0 pixels"),
    Mistake("the clip window has no height", fields(102, height=0), "CLE-026", "640 x 0"),
    Mistake("the clip window is elsewhere", fields(102, left=700, bottom=500), "DRAW-004", "(700, 500)"),
    Mistake("the clip window is missing", without(102), "CLE-026", "0 x 0 pixels"),
    Mistake(
        "the viewport is far away", fields(103, x=-16000, y=-16000), "DRAW-004", "offset is (-1000, -1000)"
    ),
    Mistake(
        "the viewport offset is in pixels", fields(103, x=320, y=240), "DRAW-014", "in 1/16 pixel, so 5120"
    ),
    Mistake("the clipper's scale is in pixels", fields(105, x=320, y=-240), "DRAW-014", "record 105", GL),
    Mistake(
        "the Z planes are exchanged", fields(104, minimum=1.0, maximum=0.0), "DRAW-008", "smaller one comes"
    ),
    Mistake("the Z planes are both 0", fields(104, minimum=0.0, maximum=0.0), "DRAW-008", "planes 0 and 0"),
    # vertices
    Mistake(
        "vertices in pixels", moved(lambda v: [v[0] / 16, v[1] / 16, *v[2:]]), "DRAW-013", "in 1/16 pixel"
    ),
    Mistake("Z beyond 1", moved(lambda v: [*v[:2], 2.0, *v[3:]]), "DRAW-008", "Zs of the vertices is 2"),
    Mistake("Z negative", moved(lambda v: [*v[:2], -0.5, *v[3:]]), "DRAW-008", "Zs of the vertices is -0.5"),
    Mistake("1/W is 0", moved(lambda v: [*v[:3], 0.0, *v[4:]]), "VTX-010", "is 0, 0, 0"),
    Mistake("1/W is negative", moved(lambda v: [*v[:3], -1.0, *v[4:]]), "VTX-010", "-1, -1, -1"),
    Mistake("all vertices are the same", moved(lambda v: [0, 0, *v[2:]]), "DRAW-003", "at pixel (320, 240)"),
    Mistake("vertices on one line", moved(lambda v: [v[0], v[0], *v[2:]]), "DRAW-003", "on one line"),
    Mistake("vertices off the screen", moved(lambda v: [v[0] + 12000, *v[1:]]), "DRAW-004", "(870, 60)"),
    Mistake("the stride is 0", shader(stride=0), "DRAW-003", "with stride 0"),
    Mistake("the stride is in words", shader(stride=6), "CLE-048", "24 bytes follow each other after 6"),
    Mistake("the vertices' address is 0", shader(vertices=0), "DRAW-003", "never filled in"),
    Mistake(
        "a point is smaller than a pixel",
        moved(lambda v: [v[0] / 800, v[1] / 800, *v[2:]]),
        "DRAW-007",
        "less than a pixel",
    ),
    Mistake(
        "positions in pixels",
        placed(lambda p: [320 + 320 * p[0], 240 + 240 * p[1], p[2]]),
        "DRAW-002",
        "are X and Y in pixels",
        GL,
    ),
    Mistake(
        "positions beyond the far plane",
        placed(lambda p: [*p[:2], 1.5]),
        "DRAW-002",
        "beyond the far plane",
        GL,
    ),
    Mistake(
        "positions before the near plane",
        placed(lambda p: [*p[:2], -7.0]),
        "DRAW-002",
        "before the near plane",
        GL,
    ),
    Mistake(
        "positions are no numbers", placed(lambda p: [float("nan"), *p[1:]]), "DRAW-002", "no numbers", GL
    ),
    Mistake("positions are all 0", placed(lambda p: [0.0, 0.0, 0.0]), "DRAW-003", "at pixel (320, 240)", GL),
    Mistake(
        "Wc is 0", coordinate(programs.COORDINATE.replace("WC", "0.0")), "DRAW-002", "Wc is 0 for all", GL
    ),
    Mistake(
        "Wc is negative",
        coordinate(programs.COORDINATE.replace("WC", "-1.0")),
        "DRAW-002",
        "Wc is negative",
        GL,
    ),
    Mistake(
        "a coordinate shader that writes nothing",
        coordinate(programs.NO_VPM),
        "VTX-004",
        "writes 0 words, a vertex has 7",
        GL,
    ),
    Mistake(
        "no attribute is selected",
        shader(vs_attributes=0, cs_attributes=0),
        "VTX-009",
        "no attribute array",
        GL,
        frozenset({"CLE-033"}),
    ),
    Mistake("the attribute's address is 0", attribute(0, bytes(4)), "DRAW-003", "at 0x00000000", GL),
    Mistake("the attribute's stride is 0", attribute(5, bytes(1)), "DRAW-003", "with stride 0", GL),
    Mistake(
        "uniforms at address 0",
        shader(vs_uniforms=0, cs_uniforms=0),
        "DRAW-003",
        "uniforms are at 0x00000000",
        GL,
    ),
    # draws
    Mistake("too few vertices", fields(33, length=1), "CLE-046", "1 vertex makes no primitive"),
    Mistake("no vertices", fields(33, length=0), "CLE-046", "0 vertices make no primitive"),
    Mistake("the draw is missing", without(33), "DRAW-001", "no primitive record"),
    Mistake("a primitive mode that does not exist", fields(33, mode=7), "CLE-016", "mode 7"),
    Mistake(
        "the shader state is missing",
        without(65),
        "CLE-025",
        "no shader state",
        others=frozenset({"CLE-013"}),
    ),
    Mistake("the shader record's address is 0", fields(65, address=0), "CLE-003", "never filled in"),
    Mistake("16-bit indices read as bytes", indexed(0, SHORTS), "DRAW-003", "are they 16-bit ones"),
    Mistake("8-bit indices read as 16 bits", indexed(1, BYTES), "CLE-014", "are the indices bytes"),
    Mistake("the greatest index is 0", indexed(1, SHORTS, 0), "CLE-014", "whose maximum is 0"),
    # programs
    Mistake(
        "the program writes no colour",
        fragment(programs.WRITE_NOTHING),
        "DRAW-010",
        "no instruction that writes a colour",
    ),
    Mistake("the program writes depth only", fragment(programs.WRITE_DEPTH), "DRAW-010", "only depth"),
    Mistake("the program discards all", fragment(programs.DISCARD), "DRAW-010", "never holds"),
    Mistake(
        "the program writes the clear colour",
        fragment(programs.WRITE_CLEAR_COLOUR),
        "DRAW-011",
        "same colour",
    ),
    Mistake("blending with alpha 0", fragment(programs.BLEND_NOTHING), "DRAW-011", "is alpha 0"),
    Mistake(
        "the program has no end",
        fragment(programs.NO_END),
        "QPU-121",
        "thrend is missing",
        others=frozenset({"QPU-047"}),
    ),
    Mistake(
        "the program's address is 0",
        shader(code=0),
        "MEM-001",
        "never filled in",
        others=frozenset({"QPU-047"}),
    ),
    Mistake("the program was never loaded", shader(code=0xC0400000), "QPU-047", "there is no program"),
    # depth and stencil
    Mistake(
        "the depth test never passes",
        fragment(programs.TEST_DEPTH, fields(96, depth_test=0)),
        "DRAW-009",
        "'never'",
    ),
    Mistake(
        "the depth test is for greater",
        fragment(programs.TEST_DEPTH, fields(96, depth_test=4)),
        "DRAW-009",
        "'greater'",
    ),
    Mistake(
        "depth is cleared to 0",
        fragment(programs.TEST_DEPTH, fields(96, depth_test=1), fields(114, z=0)),
        "DRAW-009",
        "cleared to 0x000000",
    ),
    Mistake("the stencil test never passes", fragment(programs.REFUSE_BY_STENCIL), "DRAW-009", "stencil"),
    # binning
    Mistake(
        "the binning mode is missing",
        without(112),
        "CLE-010",
        "before any binning mode",
        others=frozenset({"CLE-034"}),
    ),
    Mistake("start tile binning is missing", without(6), "CLE-011", "before record 6"),
    Mistake(
        "no tiles",
        fields(112, tiles_x=0, tiles_y=0),
        "CLE-032",
        "empty tile grid",
        others=frozenset({"CLE-010", "CLE-034"}),
    ),
    Mistake("a column of tiles too few", fields(112, tiles_x=9), "CLE-024", "9 x 8 were binned"),
    Mistake(
        "tiles thought to have 32 pixels",
        fields(112, tiles_x=20, tiles_y=15),
        "CLE-024",
        "20 x 15 were binned",
    ),
    Mistake(
        "tile memory at 0",
        fields(112, address=0),
        "CLE-003",
        "tile allocation memory at 0x00000000",
        others=frozenset({"CLE-034"}),
    ),
    Mistake("tile memory without a size", fields(112, memory_size=0), "CLE-027", "0 bytes for 80 tiles"),
    Mistake("tile memory elsewhere than the lists", fields(112, address=0xC3000000), "CLE-034", "0xc3000000"),
    Mistake("the flush is missing", without(5), "CLE-012", "no flush"),
    Mistake(
        "tile memory too small, and no more given",
        together(fields(112, memory_size=80 * 32), lost(BPOS)),
        "CLE-028",
        "",
    ),
    # rendering
    Mistake(
        "rendering waits for a semaphore that nothing increments",
        lambda s: s.replace(28, lambda f: build(8) + bytes([1]) * (f.size - 1)),
        "CLE-022",
        "without a record 7",
    ),
    Mistake("tiles do not branch to their lists", without(17), "DRAW-005", "branches to none"),
    Mistake(
        "all tiles branch to the first list",
        lambda s: s.replace(17, lambda f: build(17, address=0xC0117000)),
        "DRAW-005",
        "first",
    ),
    Mistake("tiles are not stored", without(24), "DRAW-012", "1 tile of 80"),
    Mistake(
        "the end of frame is missing", lambda s: s.replace(25, lambda _: build(24)), "CLE-020", "end of frame"
    ),
    Mistake("no tile coordinates", without(115), "CLE-019", "no tile coordinates"),
    Mistake("the rendering mode is missing", without(113), "CLE-030", "has no size"),
    Mistake("the frame has no size", surface(width=0, height=0), "CLE-030", "has no size"),
    # the surface
    Mistake(
        "the frame's address is 0",
        surface(address=0),
        "SOC-145",
        "over the exception vectors",
        others=frozenset({"SOC-042"}),
    ),
    Mistake("the frame is another buffer", surface(address=0xC2800000), "SOC-141", "to 0xc2800000"),
    Mistake("the frame is beyond the ARM's memory", surface(address=0xFF000000), "SOC-141", "to 0xff000000"),
    Mistake("the frame has 16 bits a pixel", surface(format=2), "SOC-085", "16 bits per pixel"),
    Mistake("the frame is in T format", surface(tiling=1), "SOC-085", "T or LT format"),
    Mistake("the pitch is not the width", surface(width=600), "SOC-085", "2400 bytes apart"),
    # registers
    Mistake("the V3D is not switched on", tag(0x30012, 0, 0), "SOC-030", "before the V3D has power"),
    Mistake("the rendering list is never started", lost(CT1EA), "SOC-142", "no rendering list was started"),
    Mistake("the binning list is never started", lost(CT0EA), "SOC-142", "no binning list was started"),
    Mistake("no list is started", lost(CT0CA, CT0EA, CT1CA, CT1EA), "SOC-142", "registers CT0CA"),
    Mistake("the rendering list has no beginning", lost(CT1CA), "CLE-003", "a control list at 0x00000000"),
    Mistake(
        "a list ends where it begins",
        lambda s: s.other.update({CT0EA: lambda _: s.values[CT0CA]}),
        "SOC-142",
        "the list is empty",
    ),
    Mistake(
        "lists at ARM addresses",
        lambda s: s.other.update({r: lambda value: value & ARM for r in (CT0CA, CT0EA, CT1CA, CT1EA)}),
        "CLE-041",
        "a control list is given by its ARM address",
        others=frozenset({"CLE-023"}),
    ),
    Mistake(
        "the frame at an ARM address",
        surface(address=lambda old: old & ARM),
        "CLE-041",
        "ARM address 0x3c000000",
    ),
    # the display
    Mistake(
        "the frame goes to another page", together(tag(0x48004, 1, 960), _next_page), "SOC-141", "row 480"
    ),
    Mistake("the framebuffer is one page", _next_page, "SOC-141", "0xfc12c000"),
]
"""All of them, in the order in which a frame goes through the chip."""
