"""The vertex cache DMA (VCD), natively: which vertices an index list names, and attribute arrays in
guest memory to rows of a batch.

In NV mode vertices that the program has shaded itself are copied. Such a vertex is an optional clip header
(Xc, Yc, Zc, Wc) and the words of the primitive setup (Ys:Xs, Zs, 1/Wc [, point size], varyings); the binner
gets the first words, the fragment stage those after the header. Source: AG100-R pp. 79-81, tables 45-47.
"""

from __future__ import annotations

from functools import lru_cache

from vc4lab.memory import MEMORY_MASK
from vc4lab.simd.control import unroll
from vc4lab.simd.kernel import Function, call, kernel, staged
from vc4lab.simd.members import i8, i8x16, i16, i32, i32x16, i64, ptr
from vc4lab.simd.memory import load, store, table
from vc4lab.simd.native import NativeFunction, NativeModule, build
from vc4lab.simd.types import vec
from vc4lab.simd.value import Value, const, select, splat
from vc4lab.simd.vector import any_, clz_, iota, mask_bits, mask_from_bits, max_, min_, shuffle
from vc4lab.v3d.tile_lists.scan_context import MAX_VERTICES
from vc4lab.v3d.vertex.context import VERTEX_BATCH, NvContext, VertexContext, VertexKey
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES

QUAD = vec(i32, 4)

ALL_LANES = (1 << VERTEX_BATCH) - 1
"""All lanes of a batch, as bits."""
MAX_STRIDE = 0xFFFF
"""The largest stride of arrays whose vertices are read without looking at each address."""


def plan_words(key: VertexKey) -> list[tuple[int, int] | None]:
    """For every input row the array and the word in it that ends up there (None: nothing).

    Arrays are copied in ascending order, later ones overwrite, rows beyond the total size are
    dropped.
    """
    rows: list[tuple[int, int] | None] = [None] * key.rows_in
    for array, size, offset in sorted(key.attributes):
        for word in range((size + 3) // 4):
            row = offset // 4 + word
            if row < len(rows):
                rows[row] = (array, word)
    return rows


@staged
def batch_mask(c: VertexContext | NvContext, batch: Value | int) -> Value:
    """Which vertices of a batch are wanted (i8x16, non-zero = wanted)."""
    lane = iota(VERTEX_BATCH) + batch * VERTEX_BATCH
    inside = (lane >= c.first) & (lane <= c.last)
    wanted = splat(const(i8x16.elem, 1))
    if c.used != 0:
        wanted = load(i8x16, c.used + batch * VERTEX_BATCH)
    return inside & (wanted != 0)


@staged
def lane_indices(wanted: Value, batch: Value | int) -> Value:
    """Vertex index per lane; lanes that are not wanted repeat the last wanted vertex."""
    last = const(i32, 31) - clz_(mask_bits(wanted))
    return select(wanted, iota(VERTEX_BATCH), splat(last)) + batch * VERTEX_BATCH


def transpose(quads: list[Value]) -> list[Value]:
    """16 vectors of 4 words (one per lane) as 4 rows of 16 lanes.

    Vectors a quarter apart side by side: what is left happens inside pieces of 128 bits.
    """
    pairs = [shuffle(quads[k], quads[k + 4], list(range(8))) for k in (0, 1, 2, 3, 8, 9, 10, 11)]
    z = [shuffle(pairs[k], pairs[k + 4], list(range(16))) for k in unroll(4)]
    rows = []
    for low in (0, 2):
        words = [4 * piece + low + k for piece in unroll(4) for k in (0, 16, 1, 17)]
        a, b = shuffle(z[0], z[1], words), shuffle(z[2], z[3], words)
        for half in (0, 2):
            words = [4 * piece + half + k for piece in unroll(4) for k in (0, 1, 16, 17)]
            rows.append(shuffle(a, b, words))
    return rows


def groups(key: VertexKey) -> list[tuple[int, list[int]]]:
    """Group what is read together: an array and up to four words of it that follow each other, in order.

    A word that another array overwrote begins a new group, so all groups together have as many
    rows as the column: there is no room for more.
    """
    found: list[tuple[int, list[int]]] = []
    for array, word in sorted({source for source in plan_words(key) if source is not None}):
        if found and word % 4 and found[-1][0] == array and found[-1][1][-1] == word - 1:
            found[-1][1].append(word)
        else:
            found.append((array, [word]))
    return found


GROUP_WORDS = 4
"""Numbers that `describe` gives for each group."""


def describe(key: VertexKey) -> list[int]:
    """The groups as native code takes them: array, byte offset in it, number of words, byte offset
    of its first row in `VertexContext.fetched`.
    """
    numbers = []
    row = 0
    for array, words in groups(key):
        length = len(words)
        numbers += [array, 4 * words[0], length, row * ROW_BYTES]
        row += length
    return numbers


def fetched_rows(key: VertexKey) -> list[int | None]:
    """For every input row its byte offset in `VertexContext.fetched` (None: the row is zero)."""
    places: dict[tuple[int, int], int] = {}
    row = 0
    for array, words in groups(key):
        for word in words:
            places[array, word] = row * ROW_BYTES
            row += 1
    return [None if source is None else places[source] for source in plan_words(key)]


@staged
def find_wanted(context: Value, batch: Value) -> None:
    """Notes which vertices of a batch are wanted, for `fetch`."""
    c = VertexContext.at(context)
    start = batch << 4
    if (start < c.first) | (start + (VERTEX_BATCH - 1) > c.last):
        c.wanted = mask_bits(batch_mask(c, batch))
    elif c.used == 0:
        c.wanted = ALL_LANES
    else:
        c.wanted = mask_bits(load(i8x16, c.used + start) != 0)


@staged
def fetch(context: Value, description: Value, count: Value, batch: Value) -> None:
    """Reads the words of the wanted vertices of a batch, `count` groups of them, to `fetched`.

    A group of words is read from one masked address for each lane; at the very end of memory it
    reaches into the pad instead of wrapping. It may fill four rows: what is too much is overwritten
    by the next group.
    """
    c = VertexContext.at(context)
    memory = c.memory
    for number in range(count):
        group = description + number * (4 * GROUP_WORDS)
        array = load(i32, group) << 2
        start = load(i32, c.bases + array) + load(i32, group + 4)
        stride = load(i32, c.strides + array)
        target = c.fetched + load(i32, group + 12)
        first = (start + (batch << 4) * stride) & MEMORY_MASK
        span = stride * (VERTEX_BATCH - 1)
        plain = (c.wanted == ALL_LANES) & stride.ule(MAX_STRIDE) & (first + span <= MEMORY_MASK)
        if plain:
            place, step, length = memory + first.zext(i64), stride.zext(i64), load(i32, group + 8)
            if length << 2 != stride:
                store_rows(target, transpose(quads_in_a_row(place, step)))
            elif length == 3:
                store_rows(target, packed_rows(place, 3))
            elif length == 4:
                store_rows(target, packed_rows(place, 4))
            elif length == 2:
                store_rows(target, packed_rows(place, 2))
            else:
                store_rows(target, packed_rows(place, 1))
        else:
            call(fetch_scattered, context, batch, start, stride, target)


def quads_in_a_row(place: Value, step: Value) -> list[Value]:
    """The first four words of 16 vertices, one every `step` bytes."""
    steps = (step << 1, step + (step << 1))  # few sums: the processor adds one to each address
    quads = []
    for k in range(0, VERTEX_BATCH, 4):
        base = place + step * k
        quads += [load(QUAD, p) for p in (base, base + step, base + steps[0], base + steps[1])]
    return quads


def packed_rows(place: Value, count: int) -> list[Value]:
    """`count` words of 16 vertices that stand one after the other."""
    return deinterleave([load(i32x16, place + ROW_BYTES * k) for k in range(count)])


def deinterleave(parts: list[Value]) -> list[Value]:
    """Up to four vectors, of which every n-th lane belongs together, as n rows of 16 lanes."""
    count = len(parts)
    rows = []
    for row in range(count):
        wanted = [count * lane + row for lane in range(VERTEX_BATCH)]
        found, order = parts[0], [w % VERTEX_BATCH for w in wanted]
        for k in range(1, count):  # lanes that came from the parts before keep their places
            order = [
                w % VERTEX_BATCH + VERTEX_BATCH if w // VERTEX_BATCH == k else order[lane] if k == 1 else lane
                for lane, w in enumerate(wanted)
            ]
            found = shuffle(found, parts[k], order)
        rows.append(found)
    return rows


def store_rows(target: Value, rows: list[Value]) -> None:
    """Rows of a group to their place in `fetched`."""
    for k, row in enumerate(rows):
        store(target + k * ROW_BYTES, row, align=64)


@kernel(args=(ptr, i32, i32, i32, ptr), returns=None)
def fetch_scattered(context: Value, batch: Value, start: Value, stride: Value, target: Value) -> None:
    """Reads a group of words lane by lane: some are not wanted, or stand far apart."""
    c = VertexContext.at(context)
    indices = lane_indices(mask_from_bits(c.wanted), batch)
    offsets = ((indices * stride + start) & MEMORY_MASK).zext(i64)
    store_rows(target, transpose([load(QUAD, c.memory + offsets[lane]) for lane in unroll(VERTEX_BATCH)]))


class FetchedRows:
    """The input rows of the batch that was fetched, loaded where they are used."""

    def __init__(self, key: VertexKey, context: Value) -> None:
        self.places = fetched_rows(key)
        self.base = VertexContext.at(context).fetched

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, row: int) -> Value:
        place = self.places[row]
        if place is None:
            return splat(const(i32, 0))
        return load(i32x16, self.base + place, align=64)


def fetch_kernel(key: VertexKey) -> Function[Value]:
    """Kernel (context, batch, target): a batch's rows to host memory; returns the wanted lanes."""
    numbers = describe(key)

    @kernel(args=(ptr, i32, ptr), returns=i32)
    def fetch_batch(context: Value, batch: Value, target: Value) -> Value:
        c = VertexContext.at(context)
        description = table(i32, numbers or [0])
        count = const(i32, len(numbers) // GROUP_WORDS)
        find_wanted(context, batch)
        if c.wanted != 0:
            fetch(context, description, count, batch)
            rows = FetchedRows(key, context)
            for k in unroll(len(rows)):
                store(target + k * ROW_BYTES, rows[k])
        return c.wanted

    return fetch_batch


def _range_kernel(bits: int) -> Function[None]:
    size = bits // 8

    @kernel(args=(ptr, i32, i32, ptr, ptr), returns=None)
    def scan(memory: Value, address: Value, length: Value, used: Value, result: Value) -> None:
        first = const(i32, MAX_VERTICES)
        last = const(i32, -1)
        mark = const(i8, 1)
        for k in range(length):
            place = memory + ((address + k * size) & MEMORY_MASK).zext(i64)
            index = load(i8 if bits == 8 else i16, place).zext(i32)
            store(used + index, mark)
            first = min_(first, index)
            last = max_(last, index)
        store(result, first)
        store(result + 4, last)

    return scan


@lru_cache(maxsize=1)
def _range_module() -> NativeModule:
    kernels = {"bytes": _range_kernel(8), "shorts": _range_kernel(16)}
    return build("index_range", kernels, float_mode="default", key="index_range")


def range_function(bits: int) -> NativeFunction:
    """Native `(memory, address, length, used map, first and last)` for indices of 8 or 16 bits."""
    return _range_module()["bytes" if bits == 8 else "shorts"]


@kernel(args=(ptr,), returns=None)
def copy_vertices(context: Value) -> None:
    """Copy the wanted vertices: word r of vertex i to row r of its batch."""
    c = NvContext.at(context)
    for batch in range(c.first >> 4, (c.last >> 4) + 1):
        wanted = batch_mask(c, batch)
        if any_(wanted):
            start = lane_indices(wanted, batch) * c.stride + c.base
            target = c.output + batch * c.pitch
            for group in range((c.rows + 3) >> 2):
                first = group * 4
                address = ((start + first * 4) & MEMORY_MASK).zext(i64)
                quads = [load(QUAD, c.memory + address[lane]) for lane in unroll(VERTEX_BATCH)]
                rows = transpose(quads)
                for k in unroll(4):
                    if first + k < c.rows:
                        store(target + (first + k) * ROW_BYTES, rows[k])


@lru_cache(maxsize=1)
def copy_function() -> NativeFunction:
    """Native `copy_vertices`."""
    kernels = {"copy": copy_vertices}
    return build("nv_vertices", kernels, float_mode="default", key="nv_vertices")["copy"]
