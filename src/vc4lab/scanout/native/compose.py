"""Planes over each other: lines picked or filtered, blended over what is there."""

from __future__ import annotations

from functools import cache

from vc4lab.scanout.native.lines import BLOCK, Layer, line_of, wide
from vc4lab.scanout.scaling import ONE, WEIGHT_BITS
from vc4lab.simd.kernel import kernel, staged
from vc4lab.simd.members import i8, i32, i32x16, i64, ptr
from vc4lab.simd.memory import gather, load, masked_load, masked_store, store
from vc4lab.simd.native import NativeModule, build
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, splat
from vc4lab.simd.vector import iota, max_, min_

COPY, CONSTANT, PREMULTIPLIED, COVERAGE = range(4)
"""Nothing shines through; by the plane's alpha; by the pixels' alpha as well, in two ways."""
_PIXEL = vec(i8, 4)
_PIXEL_SUM = vec(i32, 4)
_PART = 8
_PART_BYTES = vec(i8, 4 * _PART)
_PART_SUMS = vec(i32, 4 * _PART)


@kernel(args=(ptr,), returns=None)
def lay(place: Value) -> None:
    """Lines picked from the source, or those of a plane in its own size, over `out`."""
    layer = Layer.at(place)
    for number in range(layer.row_count):
        offset = wide(number)
        line = line_of(layer, load(i32, layer.rows + offset * 4))
        if layer.columns != 0:
            pick_columns(layer, line)
            line = layer.picked
        blend_line(layer, line, layer.out + offset * layer.out_pitch)


@kernel(args=(ptr,), returns=None)
def across(place: Value) -> None:
    """Source lines `rows`, scaled along their pixels, into `out`."""
    layer = Layer.at(place)
    taps, left = layer.taps, layer.left
    for number in range(layer.row_count):
        offset = wide(number)
        line = line_of(layer, load(i32, layer.rows + offset * 4))
        target = layer.out + offset * layer.out_pitch
        at = layer.columns
        weight = layer.weights
        for pixel in range(layer.count):
            total = splat(ONE // 2, 4)
            for _tap in range(taps):
                source = line + ((load(i32, at) - left) * 4).zext(i64)
                total += load(_PIXEL, source).zext(_PIXEL_SUM) * splat(load(i32, weight), 4)
                at = at + 4
                weight = weight + 4
            store(target + wide(pixel * 4), byte_of(total).trunc(_PIXEL))


@kernel(args=(ptr,), returns=None)
def along(place: Value) -> None:
    """Lines that are sums of the source's lines (32-bit pixels already), blended over `out`."""
    layer = Layer.at(place)
    taps = layer.taps
    at = layer.rows
    weight = layer.weights
    for number in range(layer.row_count):
        for part in range(0, layer.count, _PART):
            offset = wide(part * 4)
            total = splat(ONE // 2, 4 * _PART)
            for tap in range(taps):
                step = wide(tap * 4)
                line = layer.frame + load(i32, at + step).zext(i64) * layer.pitch
                pixels = load(_PART_BYTES, line + offset).zext(_PART_SUMS)
                total += pixels * splat(load(i32, weight + step), 4 * _PART)
            store(layer.picked + offset, byte_of(total).trunc(_PART_BYTES))
        at = at + (taps * 4).zext(i64)
        weight = weight + (taps * 4).zext(i64)
        blend_line(layer, layer.picked, layer.out + wide(number) * layer.out_pitch)


@staged
def byte_of(total: Value) -> Value:
    """Sums of weighted bytes as bytes."""
    return max_(min_(total >> WEIGHT_BITS, 255), 0)


@staged
def pick_columns(layer: Layer, line: Value) -> None:
    """The source's pixels that are shown, into `picked`."""
    for done in range(0, layer.count, BLOCK):
        offset = wide(done * 4)
        columns = load(i32x16, layer.columns + offset) - layer.left
        store(layer.picked + offset, gather(i32, line, columns * 4))


@staged
def blend_line(layer: Layer, line: Value, out: Value) -> None:
    """A line over the screen's."""
    count = layer.count
    whole = count & ~(BLOCK - 1)
    copies = layer.blend == COPY
    for done in range(0, whole, BLOCK):
        offset = wide(done * 4)
        pixels = load(i32x16, line + offset)
        if not copies:
            pixels = blended(layer, pixels, load(i32x16, out + offset))
        store(out + offset, pixels)
    if whole != count:
        offset = (whole * 4).zext(i64)
        inside = iota(BLOCK) < count - whole
        pixels = load(i32x16, line + offset)
        if not copies:
            pixels = blended(layer, pixels, masked_load(i32x16, out + offset, inside))
        masked_store(out + offset, pixels, inside)


@staged
def blended(layer: Layer, pixels: Value, below: Value) -> Value:
    """Sixteen pixels over others."""
    bias = layer.rounding
    alpha = splat(layer.alpha, BLOCK)
    factor = alpha
    if layer.blend != CONSTANT:
        alpha = part_of(pixels.shr(24) * alpha, bias)
    if layer.blend == COVERAGE:
        factor = alpha
    result = splat(0, BLOCK)
    for low in (0, 8, 16):
        own = part_of((pixels.shr(low) & 255) * factor, bias)
        other = part_of((below.shr(low) & 255) * (255 - alpha), bias)
        result = result | min_(own + other, 255) << low
    return result


@staged
def part_of(product: Value, bias: Value) -> Value:
    """A product of two bytes, divided by 255: rounded to the nearest (bias 128) or down (1)."""
    raised = product + bias
    return (raised + raised.shr(8)).shr(8)


@cache
def composer() -> NativeModule:
    """The kernels as machine code, made once (and kept on disk)."""
    functions = {"lay": lay, "across": across, "along": along}
    return build("drm_compose", functions, float_mode="caller", key="drm_compose")
