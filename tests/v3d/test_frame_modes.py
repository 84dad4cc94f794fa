"""Multisample, 64-bit and double-buffer frames through the registers, with every kind of store."""

import struct

import numpy as np
import pytest
from tests.support.jobs import CT1CA, CT1EA, Job, nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.records.control import build
from vc4lab.v3d.core import V3D
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

DRAW, OVERSAMPLE_4X, Z_UPDATE = 0x7003, 0x40, 0x8000
"""Record 96: both faces and a depth test that always passes; four samples; Z written."""
COLOURS = """
# the three varyings are red, green and blue
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; fmul r1, vary, ra15
    fadd r1, r1, r5 ; mov r3.8a, r0
    nop ; fmul r2, vary, ra15
    fadd r2, r2, r5 ; mov r3.8b, r1
    nop ; mov r3.8c, r2
    nop ; mov r3.8d, 1.0
    sbwait
    mov tlbz, rb15
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
CORNERS = [(64.25, 8.5, 1, 0, 0), (8.75, 120, 0, 1, 0), (121, 117.5, 0, 0, 1)]
CLEAR = 0xFF402010


class Frame:
    """A triangle in a frame of some mode."""

    def __init__(self, tile: tuple[int, int], choices: dict[str, str] | None = None, **mode: int) -> None:
        self.reporter = Reporter(strict=True)
        self.job = Job(width=128, height=128, tile=tile)
        unknowns = DEFAULT_UNKNOWNS.with_(**(choices or {}))
        self.v3d = V3D(self.job.memory, self.reporter, threads=2, unknowns=unknowns)
        self.mode = mode

    def bin(self, config: int, program: str = COLOURS, corners=CORNERS) -> int:
        job = self.job
        vertices = b"".join(nv_vertex(x, y, 0.5, 1.0, *rest) for x, y, *rest in corners)
        varyings = len(corners[0]) - 2
        record = struct.pack("<BBBBIII", 1, 12 + 4 * varyings, 0, varyings, job.program(program),
                             0, job.put(vertices))  # fmt: skip
        body = viewport(job, config) + build(65, address=job.put(record))
        body += build(33, mode=4, length=len(corners), first=0)
        start, end, lists = job.binning(body, **self.mode)
        self.binning = (start, end)
        return lists

    def render(
        self, tile_records, lists: int, width: int = 128, height: int = 128, clear_mask: int = 0,
        **options: int,
    ) -> None:  # fmt: skip
        """`tile_records(column, row, last)` gives what stands after the sub-list of a tile."""
        job = self.job
        columns, rows = job.tiles
        data = build(114, colour=CLEAR, colour_high=CLEAR, z=0xFFFFFF, vg_mask=clear_mask)
        data += build(113, width=width, height=height, format=1, **self.mode, **options)
        data += build(115) + build(28)
        for row, column in np.ndindex(rows, columns):
            last = int((row, column) == (rows - 1, columns - 1))
            before, after = tile_records(column, row, last)
            data += before + build(115, column=column, row=row)
            data += build(17, address=lists + 32 * (row * columns + column)) + after
        start = job.put(data)
        job.run(self.v3d, self.binning, (start, start + len(data)))
        assert self.v3d.read(0x134) == 1
        assert self.v3d.read(0x138) == 1

    def words(self, address: int, width: int = 128, height: int = 128) -> np.ndarray:
        return self.job.memory.array(address, width * height, "<u4").reshape(height, width).copy()


def plain_picture() -> np.ndarray:
    frame = Frame((64, 64))
    at = frame.job.room(65536)
    frame.render(lambda x, y, last: (b"", build(25 if last else 24)), frame.bin(DRAW), address=at)
    return frame.words(at)


def test_multisample_frame_resolves_dumps_and_reloads():
    frame = Frame((32, 32), multisample=1)
    job = frame.job
    colour, depth = job.room(16 * 16384), job.room(16 * 16384)
    first, second, zs = job.room(65536), job.room(65536), job.room(65536)
    lists = frame.bin(DRAW | OVERSAMPLE_4X | Z_UPDATE)

    def dump(x: int, y: int, last: int) -> tuple[bytes, bytes]:
        place, here = 16384 * (4 * y + x), build(115, column=x, row=y)
        return b"", (
            build(26, address=colour + place, disable_zs=1, disable_clear=1) + here
            + build(26, address=depth + place, disable_colour=1, disable_clear=1) + here
            + build(28, buffer=2, address=zs, disable_colour_clear=1) + here
            + build(25 if last else 24)
        )  # fmt: skip

    frame.render(dump, lists, address=first, decimate=1)
    plain, picture = plain_picture(), frame.words(first)
    inside = (plain != CLEAR) & (picture != CLEAR)
    same = picture == plain
    assert inside.sum() > 5000
    assert same[inside].mean() > 0.93  # only the edges are mixed
    assert ((picture != CLEAR) & (plain == CLEAR)).sum() > 50
    stored = frame.words(zs)
    assert (stored[60, 64] >> 8) == 0x800000

    # Reload both dumps, one after the other, and resolve again: the same picture.
    start, end, empty = job.binning(b"", **frame.mode)
    frame = Frame((32, 32), multisample=1)
    frame.job.memory, frame.binning = job.memory, (start, end)
    frame.v3d = V3D(job.memory, frame.reporter)
    frame.job.top = job.top

    def reload(x: int, y: int, last: int) -> tuple[bytes, bytes]:
        place, here = 16384 * (4 * y + x), build(115, column=x, row=y)
        keep = build(28, disable_colour_clear=1, disable_zs_clear=1, disable_vg_mask_clear=1)
        before = build(27, address=colour + place, disable_zs=1) + here + keep
        before += build(27, address=depth + place, disable_colour=1)
        after = build(28, buffer=2, address=zs, disable_colour_clear=1) + here
        return before, after + build(25 if last else 24)

    frame.job.memory.fill(zs, 65536, 0)
    frame.render(reload, empty, address=second, decimate=1)
    assert (frame.words(second) == picture).all()
    assert (frame.words(zs) == stored).all()


def test_one_full_store_has_colour_and_depth_and_ends_the_frame():
    frame = Frame((32, 32), multisample=1)
    at = frame.job.room(16 * 32768)
    lists = frame.bin(DRAW | Z_UPDATE)  # no oversampling: coverage of the centre

    def dump(x: int, y: int, last: int) -> tuple[bytes, bytes]:
        return b"", build(26, address=at + 32768 * (4 * y + x), last_tile=last)

    frame.render(dump, lists)
    plain = plain_picture()
    for y, x in np.ndindex(4, 4):
        block = frame.job.memory.array(at + 32768 * (4 * y + x), 8192, "<u4")
        quads = block.reshape(2, 16, 16, 4, 2, 2)
        assert (quads == quads[:, :, :, :1]).all()  # four equal samples
        colours = quads[0, :, :, 0].transpose(0, 2, 1, 3).reshape(32, 32)
        tile = plain[32 * y : 32 * y + 32, 32 * x : 32 * x + 32]
        assert (colours == tile).all()
        depth = quads[1, :, :, 0].transpose(0, 2, 1, 3).reshape(32, 32)
        assert ((depth == 0x80000000) == (tile != CLEAR)).all()


@pytest.mark.parametrize(("decimate", "tiling"), [(0, 0), (0, 1), (1, 2), (2, 0)])
def test_general_stores_of_a_multisample_frame(decimate, tiling):
    """Record 28 does as its own field says; records 24 and 25 only with this choice."""
    frame = Frame((32, 32), {"resolve_without_decimate": "sample_0"}, multisample=1)
    at, other = frame.job.room(65536), frame.job.room(65536)
    lists = frame.bin(DRAW | OVERSAMPLE_4X)
    size = 64 if decimate == 2 else 128

    def both(x: int, y: int, last: int) -> tuple[bytes, bytes]:
        general = build(28, buffer=1, tiling=tiling, decimate=decimate, address=at,
                        disable_colour_clear=1, disable_zs_clear=1)  # fmt: skip
        return b"", general + build(115, column=x, row=y) + build(25 if last else 24)

    frame.render(both, lists, size, size, address=other, decimate=decimate, tiling=tiling)
    assert frame.job.memory.read(at, size * size * 4) == frame.job.memory.read(other, size**2 * 4)
    assert (frame.words(other, size, size) != CLEAR).sum() > 1000


HALF_FLOATS = """
    ldi r0, 0x3C003800
    ldi r1, 0x40004200
    sbwait
    mov tlbc, r0
    mov tlbc, r1 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


@pytest.mark.parametrize("multisample", [0, 1])
@pytest.mark.parametrize("tiling", [0, 1])
def test_64_bit_frames(multisample, tiling):
    tile = (32, 16) if multisample else (64, 32)
    frame = Frame(tile, colour64=1, multisample=multisample)
    at = frame.job.room(128 * 128 * 8)
    corners = [(x, y) for x, y, *_ in CORNERS]
    lists = frame.bin(DRAW, HALF_FLOATS, corners)
    done = lambda x, y, last: (b"", build(25 if last else 24))  # noqa: E731
    frame.render(done, lists, address=at, tiling=tiling)
    pixels = frame.job.memory.array(at, 128 * 128, "<u8")
    drawn = pixels == 0x4000420_03C003800
    assert (pixels[~drawn] == CLEAR << 32 | CLEAR).all()
    assert drawn.sum() == (plain_picture() != CLEAR).sum()


MASKS = """
    nop
    sbwait
    nop ; nop ; loadam
    add r0, r4, 5
    mov tlbam, r0
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


def test_vg_mask_is_cleared_drawn_loaded_and_stored():
    frame = Frame((64, 64))
    job = frame.job
    masks, everything, colours = job.room(2 * 16384), job.room(4 * 49152), job.room(65536)
    lists = frame.bin(DRAW, MASKS, [corner[:2] for corner in CORNERS])

    def both(x: int, y: int, last: int) -> tuple[bytes, bytes]:
        keep = {"disable_colour_clear": 1, "disable_zs_clear": 1, "disable_vg_mask_clear": 1}
        here = build(115, column=x, row=y)
        after = build(28, buffer=4, address=masks, **keep) + here
        after += build(28, buffer=5, address=everything + 49152 * (2 * y + x), **keep) + here
        return b"", after + build(25 if last else 24)

    drawn = plain_picture() != CLEAR
    frame.render(both, lists, address=colours, vg_mask=1, clear_mask=0x21)
    stored = job.memory.array(masks, 128 * 128).reshape(128, 128).copy()
    assert (stored == np.where(drawn, 0x26, 0x21)).all()
    assert (frame.words(colours) == np.where(drawn, 0x26, CLEAR)).all()
    first = job.memory.array(everything, 3 * 4096, "<u4").reshape(3, 32, 32, 2, 2)
    tile = first.transpose(0, 1, 3, 2, 4).reshape(3, 64, 64)
    assert (tile[0] == np.where(drawn, 0x26, CLEAR)[:64, :64]).all()
    assert (tile[1] == 0xFFFFFF00).all()
    assert (tile[2] == stored[:64, :64]).all()

    start, end, empty = job.binning(b"")
    frame.v3d = V3D(job.memory, frame.reporter)
    frame.binning = (start, end)

    def reload(x: int, y: int, last: int) -> tuple[bytes, bytes]:
        after = build(28, buffer=4, address=masks + 16384, last_tile=last)
        return build(29, buffer=4, address=masks), after

    frame.render(reload, empty, vg_mask=1)
    assert (job.memory.array(masks + 16384, 128 * 128).reshape(128, 128) == stored).all()


@pytest.mark.parametrize("choice", ["half", "full"])
def test_double_buffer_frames_look_the_same(choice):
    frame = Frame((64, 32 if choice == "half" else 64), double_buffer=1)
    unknowns = frame.v3d.unknowns.with_(double_buffer_tile=choice)
    frame.v3d = V3D(frame.job.memory, frame.reporter, unknowns=unknowns)
    at = frame.job.room(65536)
    frame.render(lambda x, y, last: (b"", build(25 if last else 24)), frame.bin(DRAW), address=at)
    assert (frame.words(at) == plain_picture()).all()


def test_a_mask_that_the_frame_does_not_have_is_stored_as_zeros():
    frame = Frame((64, 64))
    masks = frame.job.room(128 * 128)
    frame.job.memory.fill(masks, 128 * 128, 0xEE)
    lists = frame.bin(DRAW, MASKS, [corner[:2] for corner in CORNERS])
    frame.render(lambda x, y, last: (b"", build(28, buffer=4, address=masks, last_tile=last)), lists)
    assert not frame.job.memory.array(masks, 128 * 128).any()


@pytest.mark.parametrize("vg_mask", [0, 1])
@pytest.mark.parametrize("kept", range(4))
def test_what_a_store_does_not_clear_is_still_there(kept, vg_mask):
    frame = Frame((64, 64))
    job = frame.job
    colour, zs = job.room(16384), job.room(16384)
    data = build(114, colour=0x11111111, colour_high=0x11111111, z=0x111111, stencil=1)
    data += build(113, width=64, height=64, format=1, address=colour, vg_mask=vg_mask)
    data += build(115) + build(28)
    data += build(114, colour=0x22222222, colour_high=0x22222222, z=0x222222, stencil=2)
    off = {"disable_colour_clear": kept & 1, "disable_zs_clear": kept >> 1}
    data += build(115) + build(28, **off) + build(115)
    data += build(28, buffer=2, address=zs, disable_colour_clear=1, disable_zs_clear=1)
    at = job.put(data + build(115) + build(25))
    frame.v3d.write(CT1CA, at)
    frame.v3d.write(CT1EA, at + len(data) + 4)
    assert (frame.words(colour, 64, 64) == (0x11111111 if kept & 1 else 0x22222222)).all()
    assert (frame.words(zs, 64, 64) == (0x11111101 if kept & 2 else 0x22222202)).all()


def test_a_load_can_wait_for_the_next_frame():
    """A load after the last store of a frame belongs to the first tile of the next one."""
    frame = Frame((64, 64))
    job = frame.job
    source, target = job.put(bytes(range(256)) * 256), job.room(65536)
    start, end, _ = job.binning(b"")
    mode = build(113, width=128, height=128, format=1, address=target)
    data = mode + build(115) + build(28, buffer=1, address=job.room(65536), tiling=2) + build(115)
    data += build(25) + build(29, buffer=1, address=source) + build(115) + build(25)
    at = job.put(data)
    job.run(frame.v3d, (start, end), (at, at + len(data)))
    assert frame.v3d.read(0x138) == 2
    assert (frame.words(target)[:64, :64] == frame.words(source)[:64, :64]).all()
