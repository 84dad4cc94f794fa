"""Loads, stores, dumps and clears of tiles in any order, against a model made from the reference.

Rectangles are drawn with random depth and stencil setups; each frame then stores what is in the
tile buffer in several ways, with every combination of clears that are switched off.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from tests.support.jobs import Job, nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D

SAMPLES = np.array([(3, 1), (7, 3), (1, 5), (5, 7)]) * 2
"""Of a multisample frame, 1/16 pixel."""
UNKNOWN = -1
"""What lies beyond the frame's edge after a load is not documented."""
COLOUR, ZS, Z, MASK = 1, 2, 3, 4
"""Buffers of records 28 and 29."""
UTILES = {32: (4, 4), 16: (8, 4), 8: (8, 8)}
SUB_TILES = np.array([[0, 3, 1, 2], [2, 1, 3, 0]])


def offsets(x, y, width: int, bits: int, tiling: int):
    """Bytes from a surface's address to pixels: raster, T or LT."""
    size = bits // 8
    if tiling == 0:
        return y * ((width * size + 15) // 16 * 16) + x * size
    columns, rows = UTILES[bits]
    ux, uy = x // columns, y // rows
    inner = y % rows * (columns * size) + x % columns * size
    if tiling == 2:
        return (uy * -(-width // columns) + ux) * 64 + inner
    across, odd = -(-width // (8 * columns)), (uy >> 3) & 1
    tx = np.where(odd, across - 1 - (ux >> 3), ux >> 3)
    sub = SUB_TILES[odd, (uy >> 2 & 1) * 2 + (ux >> 2 & 1)]
    tile = (uy >> 3) * across + tx
    return 4096 * tile + 1024 * sub + 64 * ((uy & 3) * 4 + (ux & 3)) + inner


def to_565(colour):
    """Undithered, rounded as Broadcom's software does it."""

    def five(x):
        x = x + (x >= 128)
        return (x + 3 - (x >> 5)) >> 3

    green = colour >> 8 & 255
    green = (green - (green >= 171) + (green <= 84)) >> 2
    return five(colour & 255) << 11 | green << 5 | five(colour >> 16 & 255)


def from_565(word):
    red, green, blue = word >> 11, word >> 5 & 63, word & 31
    parts = red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2
    return parts[0] | parts[1] << 8 | parts[2] << 16 | 0xFF000000


COMPARE = (
    lambda a, b: np.zeros(b.shape, bool), np.less, np.equal, np.less_equal,
    np.greater, np.not_equal, np.greater_equal, lambda a, b: np.ones(b.shape, bool),
)  # fmt: skip
OPERATIONS = (
    lambda old, ref: 0 * old, lambda old, ref: old, lambda old, ref: 0 * old + ref,
    lambda old, ref: np.minimum(old + 1, 255), lambda old, ref: np.maximum(old - 1, 0),
    lambda old, ref: old ^ 255, lambda old, ref: (old + 1) & 255, lambda old, ref: (old - 1) & 255,
)  # fmt: skip


@dataclass
class Rectangle:
    """A draw: edges in 1/16 pixel, what its program writes, record 96."""

    edges: tuple[int, int, int, int]
    depth: float
    stencil: list[int]
    colour: int
    mask: int
    config: int
    turned: bool

    @classmethod
    def of(cls, rng: random.Random, width: int, height: int, oversample: int) -> Rectangle:
        x = sorted(rng.sample(range(-100, width * 16 + 100), 2))
        y = sorted(rng.sample(range(-100, height * 16 + 100), 2))
        words = []
        for _ in range(rng.choice((0, 0, 1, 2))):
            side = rng.randrange(4)
            low = rng.choice((0, 0x40, 0xFF)) << 8 | rng.choice((0xFF, 0xF0))
            words.append(side << 30 | (rng.getrandbits(14) << 16 | low if side else low))
        config = rng.choice((3, 3, 3, 3, 1, 2)) | rng.randrange(2) << 2 | oversample
        config |= rng.choice((*range(8), *[7] * 8)) << 12 | rng.randrange(2) << 15
        depth = rng.choice((0.0, 0.125, 0.25, 0.5, 0.75, 1.0))
        edges = x[0], y[0], x[1], y[1]
        colour, mask = rng.getrandbits(32), rng.getrandbits(8)
        return cls(edges, depth, words, colour, mask, config, rng.random() < 0.5)

    def records(self, job: Job) -> bytes:
        text = "nop ; nop ; sbwait\n" + "mov stencil, unif\n" * len(self.stencil)
        text += "mov tlbz, rb15\n nop\n nop\n mov r0, unif\n mov r1, unif\n mov tlbam, r0\n"
        text += "mov tlbc, r1\n nop ; nop ; thrend\n nop\n nop ; nop ; sbdone\n"
        words = [*self.stencil, self.mask, self.colour]
        uniforms = job.put(struct.pack(f"<{len(words)}I", *words))
        left, top, right, bottom = (value / 16 for value in self.edges)
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        numbers = (0, 2, 1, 0, 3, 2) if self.turned else (0, 1, 2, 0, 2, 3)
        vertices = b"".join(nv_vertex(*corners[k], self.depth, 1.0) for k in numbers)
        shader = struct.pack("<BBBBIII", 1, 12, 0, 0, job.program(text), uniforms,
                             job.put(vertices))  # fmt: skip
        state = b"\x60" + self.config.to_bytes(3, "little") + build(65, address=job.put(shader))
        return state + build(33, mode=4, length=6)


class Buffer:
    """The tile buffer: arrays of shape (rows, columns, samples)."""

    def __init__(self, width: int, height: int, samples: int) -> None:
        self.samples = samples
        self.y, self.x = np.mgrid[0:height, 0:width]
        self.planes = {k: np.zeros((height, width, samples), np.int64) for k in ("c", "z", "s", "m")}
        self.column = self.row = 0

    def __getattr__(self, name: str):
        return self.planes[name]

    def set(self, name: str, where, value) -> None:
        self.planes[name] = np.where(where, value, self.planes[name])

    def clear(self, words: dict[str, int], keep: int) -> None:
        """`keep`: bits of the buffers that are not cleared: colour, Z and stencil, mask."""
        for name, bit in (("c", 1), ("z", 2), ("s", 2), ("m", 4)):
            if not keep & bit:
                self.planes[name][:] = words[name]

    def draw(self, rectangle: Rectangle, size: tuple[int, int], oversample: bool) -> None:
        points = SAMPLES if oversample else np.array([(8, 8)] * self.samples)
        px, py = self.x + self.column * self.x.shape[1], self.y + self.row * self.y.shape[0]
        left, top, right, bottom = rectangle.edges
        x, y = px[:, :, None] * 16 + points[:, 0], py[:, :, None] * 16 + points[:, 1]
        active = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        active &= ((px < size[0]) & (py < size[1]))[:, :, None]
        config = rectangle.config
        forward = rectangle.turned == bool(config & 4)
        if not config & (1 if forward else 2):
            return
        setup, mask = None, 0
        for word in rectangle.stencil:
            if not word >> 30:
                mask = word >> (0 if forward else 8) & 255
            elif word >> 30 & (1 if forward else 2):
                setup, mask = word, (1, 3, 15, 255)[word >> 28 & 3]
        depth = min(int(np.float32(rectangle.depth) * 2**24), 0xFFFFFF)
        passed = nearer = COMPARE[config >> 12 & 7](depth, self.z)
        if setup is not None:
            reference, old = setup >> 8 & 255, self.s
            same = COMPARE[setup >> 16 & 7](reference & setup & 255, old & setup & 255)
            on_pass, on_fail, sfail = (OPERATIONS[setup >> k & 7](old, reference)
                                       for k in (22, 25, 19))  # fmt: skip
            new = np.where(same, np.where(nearer, on_pass, on_fail), sfail)
            self.set("s", active, old & ~mask | new & mask)
            passed = same & nearer
        active = active & passed
        if config & 0x8000:
            self.set("z", active, depth)
        self.set("m", active, rectangle.mask)
        self.set("c", active, rectangle.colour)

    def resolved(self, decimate: int):
        if not decimate:
            return self.c[:, :, 0]
        channels = [((self.c >> shift & 255).sum(axis=2) + 2 >> 2) << shift
                    for shift in (0, 8, 16, 24)]  # fmt: skip
        return np.where((self.c == UNKNOWN).any(axis=2), UNKNOWN, sum(channels))

    def dump_places(self):
        """Words from the beginning of a dumped plane to each sample."""
        x, y, s = self.x[:, :, None], self.y[:, :, None], np.arange(self.samples)
        quad = (y >> 1) * (self.x.shape[1] // 2) + (x >> 1)
        return quad * 4 * self.samples + s * 4 + (y & 1) * 2 + (x & 1)


class World:
    """A frame, the surfaces it uses and what must be in them."""

    def __init__(self, seed: int, engine: str) -> None:
        rng = self.rng = random.Random(seed)
        self.samples = rng.choice((1, 4, 4))
        self.double = self.samples == 1 and rng.random() < 0.2
        tile = (32, 32) if self.samples == 4 else (64, 32 if self.double else 64)
        self.size = rng.randint(40, 110), rng.randint(30, 90)
        self.job = Job(width=self.size[0], height=self.size[1], tile=tile)
        self.reporter = Reporter(strict=True)
        self.v3d = V3D(self.job.memory, self.reporter, threads=1, engine=engine)
        self.tb = Buffer(*tile, self.samples)
        self.oversample = self.samples == 4 and rng.random() < 0.8
        self.clears = dict.fromkeys("czsm", 0)
        self.expected: dict[int, int] = {}

    def surface(self, bits: int) -> int:
        """Room for a surface in any tiling."""
        columns, rows = UTILES[bits]
        width, height = (-(-n // (8 * u)) for n, u in zip(self.size, (columns, rows), strict=True))
        return self.job.room(width * height * 4096 + 64)

    def _pixels(self):
        tb = self.tb
        x, y = tb.x + tb.column * tb.x.shape[1], tb.y + tb.row * tb.y.shape[0]
        return x, y, (x < self.size[0]) & (y < self.size[1])

    def _write(self, address, values, size: int) -> None:
        address, values = np.broadcast_arrays(address, values)
        known = values >= 0
        for byte in range(size):
            bytes_ = (values[known] >> 8 * byte & 255).tolist()
            self.expected.update(zip((address[known] + byte).tolist(), bytes_, strict=True))

    def store(self, buffer: int, form: int, tiling: int, decimate: int, at: int, bits: int) -> None:
        """The model of a store; `form` 2 is 565."""
        tb = self.tb
        x, y, inside = self._pixels()
        if buffer == COLOUR:
            values = tb.resolved(decimate)
            values = np.where(values < 0, UNKNOWN, to_565(values)) if form else values
        elif buffer == MASK:
            values = tb.m[:, :, 0]
        else:
            stencil = tb.s[:, :, 0] if buffer == ZS else 0
            values = tb.z[:, :, 0] << 8 | stencil
        places = at + offsets(x, y, self.size[0], bits, tiling)
        self._write(places[inside], values[inside], bits // 8)

    def load(self, buffer: int, form: int, tiling: int, at: int, bits: int) -> None:
        x, y, inside = self._pixels()
        places = offsets(x[inside], y[inside], self.size[0], bits, tiling)
        raw = self.job.memory.array(at, int(places.max()) + 4, "u1").astype(np.int64)
        words = sum(raw[places + k] << 8 * k for k in range(bits // 8))
        found = np.full(inside.shape, UNKNOWN, np.int64)
        found[inside] = from_565(words) if form else words
        for name, shift in {COLOUR: ("c0",), ZS: ("z8", "s0"), MASK: ("m0",)}[buffer]:
            part = found >> int(shift)
            part = np.where(found < 0, UNKNOWN, part & 255 if name == "s" else part)
            self.tb.planes[name][:] = part[:, :, None]

    def dump(self, at: int, parts: str) -> None:
        for number, part in enumerate(parts):
            values = self.tb.c if part == "c" else self.tb.z << 8 | self.tb.s
            values = self.tb.m if part == "m" else values
            self._write(at + 16384 * number + 4 * self.tb.dump_places(), values, 4)

    def reload(self, at: int, parts: str) -> None:
        for number, part in enumerate(parts):
            words = self.job.memory.array(at + 16384 * number, 4096, "<u4").astype(np.int64)
            words = words[self.tb.dump_places()]
            if part == "z":
                self.tb.planes["z"], self.tb.planes["s"] = words >> 8, words & 255
            else:
                self.tb.planes[part] = words & 255 if part == "m" else words


def parts_of(disabled: int, names: str = "czm") -> str:
    return "".join(name for bit, name in enumerate(names) if not disabled >> bit & 1)


@pytest.mark.parametrize(
    ("seed", "engine"), [*((k, "jit") for k in range(16)), (7, "interpreter"), (9, "interpreter")]
)
def test_tiles_in_any_order(seed: int, engine: str) -> None:
    world = World(seed, engine)
    rng, job, tb = world.rng, world.job, world.tb
    draws = [Rectangle.of(rng, *world.size, 0x40 * world.oversample) for _ in range(8)]
    mode = {"multisample": int(world.samples == 4), "double_buffer": int(world.double)}
    body = viewport(job) + b"".join(draw.records(job) for draw in draws)
    start, end, lists = job.binning(body, **mode)
    columns, rows = job.tiles

    main_form, main_tiling = rng.choice((1, 2)), rng.randrange(3)
    main_bits, decimate = 32 // main_form, rng.choice((0, 1, 1)) * mode["multisample"]
    main = world.surface(main_bits)
    random_bytes = np.random.default_rng(seed).integers(0, 256, 1 << 18, np.uint8).tobytes()
    source = job.put(random_bytes, 4096)
    loading = rng.choice((0, COLOUR, ZS, MASK, 26, 28))
    form, load_tiling, load_off = 2 * (rng.random() < 0.5), rng.randrange(3), rng.randrange(7)
    load_bits = {COLOUR: 16 if form else 32, MASK: 8}.get(loading, 32)
    stores = []
    for _ in range(rng.randint(1, 4)):
        buffer = rng.choice((COLOUR, ZS, Z, MASK) + (26, 28) * (not world.double))
        bits = {COLOUR: rng.choice((16, 32)), MASK: 8}.get(buffer, 32)
        at = job.room(columns * rows << 16) if buffer > MASK else world.surface(bits)
        off, keep = rng.randrange(7), rng.choice((7, 7, rng.randrange(8)))
        stores.append((buffer, bits, rng.randrange(3), rng.randrange(2), at, off, keep))

    def clear_colours() -> bytes:
        words = {name: rng.getrandbits(bits) for name, bits in (("c", 32), ("z", 24), ("s", 8),
                                                               ("m", 8))}  # fmt: skip
        world.clears = words
        return build(114, colour=words["c"], colour_high=words["c"], z=words["z"],
                     stencil=words["s"], vg_mask=words["m"])  # fmt: skip

    data = build(113, address=main, width=world.size[0], height=world.size[1], format=main_form,
                 decimate=decimate, tiling=main_tiling, vg_mask=1, **mode)  # fmt: skip
    data += clear_colours() + build(115) + build(28)
    tb.clear(world.clears, 0)
    for number, (row, column) in enumerate(np.ndindex(rows, columns)):
        tb.column, tb.row = column, row
        if loading == 26:
            data += build(27, address=source, disable_colour=load_off & 1, disable_zs=load_off >> 1
                          & 1)  # fmt: skip
            world.reload(source, parts_of(load_off, "cz"))
        elif loading == 28:
            data += build(29, buffer=5, address=source, disable_colour=load_off & 1,
                          disable_zs=load_off >> 1 & 1, disable_vg_mask=load_off >> 2)  # fmt: skip
            world.reload(source, parts_of(load_off))
        elif loading:
            used = form if loading == COLOUR else 0
            data += build(29, buffer=loading, address=source, format=used, tiling=load_tiling)
            world.load(loading, used, load_tiling, source, load_bits)
        data += build(115, column=column, row=row)
        data += build(17, address=lists + 32 * (row * columns + column))
        for draw in draws:
            tb.draw(draw, world.size, world.oversample)
        for buffer, bits, tiling, ms_mode, at, off, keep in stores:
            if buffer > MASK:
                place = at + (number << 16)
                names = {"disable_colour": off & 1, "disable_zs": off >> 1 & 1}
                if buffer == 26:
                    keep = 7 * (keep & 1)
                    data += build(26, address=place, disable_clear=keep & 1, **names)
                    world.dump(place, parts_of(off, "cz"))
                else:
                    data += build(28, buffer=5, address=place, **names, disable_vg_mask=off >> 2,
                                  disable_colour_clear=keep & 1, disable_zs_clear=keep >> 1 & 1,
                                  disable_vg_mask_clear=keep >> 2)  # fmt: skip
                    world.dump(place, parts_of(off))
            else:
                form_ = 2 if buffer == COLOUR and bits == 16 else 0
                ms_mode *= mode["multisample"] * (buffer == COLOUR)
                data += build(28, buffer=buffer, address=at, format=form_, tiling=tiling,
                              decimate=ms_mode, disable_colour_clear=keep & 1,
                              disable_zs_clear=keep >> 1 & 1,
                              disable_vg_mask_clear=keep >> 2)  # fmt: skip
                world.store(buffer, form_, tiling, ms_mode, at, bits)
            tb.clear(world.clears, keep)
            data += build(115, column=column, row=row)
        averages = mode["multisample"]  # records 24 and 25 do, whatever record 113 says
        world.store(COLOUR, 2 * (main_form == 2), main_tiling, averages, main, main_bits)
        data += build(25 if (row, column) == (rows - 1, columns - 1) else 24)
        tb.clear(world.clears, 0)
        if rng.random() < 0.3:
            data += clear_colours()

    at = job.put(data)
    job.run(world.v3d, (start, end), (at, at + len(data)))
    assert world.v3d.read(0x138) == 1
    places = np.array(list(world.expected))
    wanted = np.array(list(world.expected.values()), np.uint8)
    low = int(places.min())
    found = job.memory.array(low, int(places.max()) - low + 1, "u1")[places - low]
    assert len(places) > 5000
    assert np.array_equal(found, wanted)
