"""The coverage accumulation pipe (CAP): paths of vector graphics, 16 samples a pixel.

Draws with record 96 bit 8 run no program. Each sample has two bits in the Z/stencil word of its
pixel (32 bits for 16 samples, so much is certain), which the update rule changes where a primitive
covers the sample; fragment programs read what is there by signal 7 as a level or as a mask. Where
the samples lie, how windings are counted and how a level is formed are choices of `vc4lab
unknowns`. Source: AG100-R pp. 50, 71; hardware reference 7.1, 7.9, 7.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.simd.kernel import staged
from vc4lab.simd.members import f32, i32, i32x16, i64
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import mask_from_bits, min_, popcount_
from vc4lab.v3d.pse.setup import Planes, Vertex, bounding_box, oriented_edge
from vc4lab.v3d.state.frame_mode import SAMPLE_BYTES
from vc4lab.v3d.state.render_state import CLOCKWISE_IS_FORWARD, ENABLE_FORWARD, ENABLE_REVERSE

if TYPE_CHECKING:
    from vc4lab.v3d.state.tile_context import FragmentKey
    from vc4lab.v3d.unknowns import Unknowns

SAMPLES = 16
_QUARTER_BITS = 2 * SAMPLES // 4
_LOW = 0x55555555
"""The lower bit of each sample's two."""


@staged
def draw_path_triangle(tracer: Any, vertices: list[Vertex]) -> None:
    """A triangle of a path: only its area counts, and which way round it is."""
    from vc4lab.v3d.pse.setup import Primitive

    v0, v1, v2 = vertices
    ax, ay, bx, by = (value.sext(i64) for value in (v1.x - v0.x, v1.y - v0.y, v2.x - v0.x, v2.y - v0.y))
    area = ax * by - bx * ay
    forward = (area > 0) ^ ((tracer.facing & CLOCKWISE_IS_FORWARD) != 0)
    enabled = select(forward, tracer.facing & ENABLE_FORWARD, tracer.facing & ENABLE_REVERSE) != 0
    box = bounding_box(vertices, tracer.window, tracer.raster)
    if ~enabled & (area != 0):
        tracer.shader.count("primitives_reversed", const(i32, 1))
    if enabled & (area != 0) & (box.left < box.right) & (box.top < box.bottom):
        sign = select(area < 0, const(i32, -1), const(i32, 0))
        ends = zip(vertices, [*vertices[1:], vertices[0]], strict=True)
        edges = [oriented_edge(a, b, sign, tracer.raster) for a, b in ends]
        none = (None, None, const(f32, 0.0))
        zero = const(f32, 0.0)
        tracer.run(
            Primitive(
                box, edges, v2.x, v2.y, none, none, Planes([], [], [], []), zero, zero, None,
                ~forward,
            )
        )  # fmt: skip


def accumulate(key: FragmentKey, word: Value, covered: list[Value], reverse: Value) -> Value:
    """A block's accumulators after a primitive. `covered`: lanes (bits) for each point, in order.

    With fewer points than samples, one point stands for samples side by side.
    """
    each = SAMPLES // len(covered)
    touched = const(i32x16, 0)
    for number, bits in enumerate(covered):
        fields = sum(1 << 2 * (number * each + k) for k in range(each))
        signed = fields - (1 << 32) if fields >> 31 else fields
        touched = touched | select(mask_from_bits(bits), const(i32x16, signed), 0)
    match key.coverage:
        case "or":
            return word | touched
        case "zero":
            return word & ~(touched | (touched << 1))
        case "odd":
            return word ^ touched
    low, high = word & _LOW, word.shr(1) & _LOW
    one, minus_one = low & ~high, low & high
    if key.unknowns["coverage_winding"] == "wrap":
        one = minus_one = const(i32x16, 0)
    rising, falling = touched & ~one, touched & ~minus_one
    up = word ^ rising ^ ((word & rising) << 1)
    down = word ^ falling ^ ((~word & falling) << 1)
    return select(splat(reverse), down, up)


def coverage_mask(word: Value) -> Value:
    """The samples that are covered, as 16 bits."""
    bits = (word | word.shr(1)) & _LOW
    for shift, mask in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
        bits = (bits | bits.shr(shift)) & mask
    return bits


def read_coverage(word: Value, as_mask: bool, unknowns: Unknowns) -> Value:
    """Read the word that signal 7 puts into r4: 16 bits, or the level in four bytes (record 96 bit 5)."""
    mask = coverage_mask(word)
    if as_mask:
        return mask
    count = popcount_(mask)
    if unknowns["coverage_level"] == "shifted":
        return min_(count * 16, 255) * 0x01010101
    return ((count * 255 + 8) >> 4) * 0x01010101


def accumulator(key: FragmentKey, zs: Value) -> Value:
    """A block's accumulators, one word a pixel; its Z and stencil words are at `zs`.

    Multisample frames have four words a pixel: "coverage_multisample" says which of them hold it.
    """
    if not _quartered(key):
        return key.layout.load_block(zs)
    word = const(i32x16, 0)
    for number in range(key.layout.samples):
        quarter = key.layout.load_block(zs + SAMPLE_BYTES * number) & 0xFF
        word = word | (quarter << _QUARTER_BITS * number)
    return word


def set_accumulator(key: FragmentKey, zs: Value, word: Value) -> None:
    """Writes what `accumulator` reads."""
    copies = key.layout.samples
    if key.unknowns["coverage_multisample"] == "first":
        copies = 1
    for number in range(copies):
        part = word
        if _quartered(key):
            part = word.shr(_QUARTER_BITS * number) & 0xFF
        key.layout.store_block(zs + SAMPLE_BYTES * number, part)


def _quartered(key: FragmentKey) -> bool:
    return key.layout.multisample and key.unknowns["coverage_multisample"] == "quarters"


def load_coverage(key: FragmentKey, zs: Value, read: list[Value]) -> Value:
    """Signal 7: the coverage of a block whose words are at `zs`; cleared in the lanes of `read`
    (for each sample) unless record 96 bit 11 says to leave it.
    """
    word = accumulator(key, zs)
    if not key.coverage_leave:
        lanes = read[0]
        for others in read[1:]:
            lanes = lanes | others
        set_accumulator(key, zs, select(lanes, 0, word))
    return read_coverage(word, key.coverage_mask, key.unknowns)
