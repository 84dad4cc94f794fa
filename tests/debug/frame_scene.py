"""A captured frame in which primitives meet every fate: drawn, hidden, stencilled, discarded, blended."""

from __future__ import annotations

import struct

from tests.support.compressed_lists import encode_compressed
from tests.support.frames import Frame, triangle
from tests.support.jobs import Job, nv_vertex, viewport

from vc4lab.jobs.model import JobsCapture
from vc4lab.jobs.recorder import JobsRecorder
from vc4lab.records.control import build
from vc4lab.records.texture import MinFilter, TextureConfig, Wrap
from vc4lab.v3d.core import V3D
from vc4lab.v3d.tmu.texture_state import describe_texture

SIZE = 80
CLEAR = 0xFF402010
LESS, OVERSAMPLE_4X, Z_UPDATE, BOTH_FACES = 0x1000, 0x40, 0x8000, 3
END = "\n nop ; nop ; thrend\n nop ; nop\n nop ; nop ; sbdone\n"
START = "nop ; nop ; sbwait\n"
PLAIN = START + "mov tlbz, rb15 ; nop\n mov tlbc, unif ; nop" + END
STENCIL = START + "mov tlb_stencil, unif\n mov tlbz, rb15\n nop ; nop\n mov tlbc, unif ; nop" + END
DISCARDING = (
    START
    + "mov r0, elem_num\n and.setf -, r0, 1 ; nop\n mov.zs tlbz, rb15 ; nop\n mov.zs tlbc, unif ; nop"
    + END
)
"""Odd columns of a quad are left out."""
BLENDING = (
    START + "mov tlbz, rb15 ; nop ; loadc\n mov r1, unif\n v8adds r1, r1, r4\n mov tlbc, r1 ; nop" + END
)

ALWAYS, EQUAL = 7, 2
BOTH_SIDES, FULL_MASK = 3 << 30, 3 << 28
KEEP, REPLACE = 1, 2


def stencil(function: int, reference: int) -> int:
    """What TLB_STENCIL_SETUP gets: a test, and that what passes leaves the reference."""
    return (
        BOTH_SIDES | FULL_MASK | KEEP << 25 | REPLACE << 22 | KEEP << 19
        | function << 16 | reference << 8 | 0xFF
    )  # fmt: skip


DRAWS = (
    (0.5, STENCIL, (stencil(ALWAYS, 0x11), 0xFF0000AA)),
    (0.7, PLAIN, (0xFF00BB00,)),
    (0.4, STENCIL, (stencil(EQUAL, 0x22), 0xFFCC0000)),
    (0.3, DISCARDING, (0xFF123456,)),
    (0.2, BLENDING, (0x00101010,)),
)
"""Depth, program and uniforms of each."""


COPYING = (
    "mov r0, vary ; nop\n fmul r0, r0, ra15\n fadd r0, r0, r5\n mov r1, vary ; nop\n fmul r1, r1, ra15\n"
    "fadd r1, r1, r5\n mov t0t, r1\n mov t0s, r0\n nop ; nop ; ldtmu0\n" + START + "mov tlbc, r4 ; nop" + END
)
"""The colour is a texel's."""
T_FORMAT = 1
WINDOW = 64
"""Edge of the texture in pixels."""


def copied() -> JobsCapture:
    """One frame of two jobs: the first draws a triangle into a texture, the second copies it, turned."""
    job = Job(width=WINDOW, height=WINDOW)
    texture, surface = job.room(4 * WINDOW * WINDOW), job.room(4 * WINDOW * WINDOW)
    corners = b"".join(nv_vertex(*place, 0.5, 1.0) for place in ((3, 5), (60.3, 9.2), (20.7, 58)))
    first = _drawn(job, PLAIN, struct.pack("<I", 0xFF00AA33), corners, 0)
    whole = (0, 0, 0.0, 1.0), (128, 0, 2.0, 1.0), (0, 128, 0.0, -1.0)  # t runs upward
    corners = b"".join(nv_vertex(x, y, 0.5, 1.0, s, t) for x, y, s, t in whole)
    config = TextureConfig(base=texture, width=WINDOW, height=WINDOW, wrap_s=Wrap.CLAMP, wrap_t=Wrap.CLAMP)
    second = _drawn(job, COPYING, struct.pack("<4I", *config.parameters()), corners, 2)
    v3d, recorder = V3D(job.memory), JobsRecorder(JobsCapture("made", "copy"))
    recorder.attach(v3d)
    for body, target, tiling in ((first, texture, T_FORMAT), (second, surface, 0)):
        start, end, lists = job.binning(viewport(job, BOTH_FACES | ALWAYS << 12) + body)
        job.run(v3d, (start, end), job.rendering(lists, target, CLEAR, tiling=tiling))
    recorder.frame(1, lambda: None)
    recorder.close()
    return recorder.capture


BANDS = 3
BAND = 16
"""Rows of each band of `minified`."""


def minified() -> JobsCapture:
    """One frame of bands with a texture: in each twice as many texels a pixel as in the one before.

    Level n of the texture has the byte 0x10 + n everywhere.
    """
    job = Job(width=WINDOW, height=WINDOW)
    room = job.room(1 << 16)
    config = TextureConfig(base=room + (1 << 15), width=WINDOW, height=WINDOW, levels=BANDS + 1,
                           min_filter=MinFilter.NEAREST_MIP_NEAREST)  # fmt: skip
    _kind, descriptor = describe_texture(*config.parameters())
    for level in reversed(range(BANDS + 1)):
        job.memory.fill(int(descriptor.base[level]), 4 * (WINDOW >> level) ** 2, 0x10 + level)
    body = viewport(job, BOTH_FACES | ALWAYS << 12)
    for band in range(BANDS):
        body += build(102, left=0, bottom=BAND * band, width=WINDOW, height=BAND)
        end = 2.0 * (1 << band)
        whole = (0, 0, 0.0, 0.0), (128, 0, end, 0.0), (0, 128, 0.0, end)
        corners = b"".join(nv_vertex(x, y, 0.5, 1.0, s, t) for x, y, s, t in whole)
        body += _drawn(job, COPYING, struct.pack("<4I", *config.parameters()), corners, 2)
    v3d, recorder = V3D(job.memory), JobsRecorder(JobsCapture("made", "bands"))
    recorder.attach(v3d)
    start, end_, lists = job.binning(body)
    job.run(v3d, (start, end_), job.rendering(lists, job.room(4 * WINDOW * WINDOW), CLEAR))
    recorder.frame(1, lambda: None)
    recorder.close()
    return recorder.capture


def own_lists(*, records: bool) -> JobsCapture:
    """A frame without a binning list: three triangles, one over the other, in tile lists of its own.

    records: primitive records in front of each tile's store, in place of compressed lists.
    """
    frame = Frame(width=WINDOW, height=WINDOW, tile=(32, 32) if records else (64, 64))
    job = frame.job
    recorder = JobsRecorder(JobsCapture("made", "own"))
    recorder.attach(frame.v3d)
    body = viewport(job, BOTH_FACES | ALWAYS << 12)
    for colour, edge in zip(OWN, (60, 50, 40), strict=True):
        body += frame.nv_shader(
            PLAIN, triangle((2, 2), (edge, 4), (6, edge)), uniforms=job.put(struct.pack("<I", colour))
        )
        if records:
            body += build(33, mode=4, length=3, first=0)
        else:
            place = job.put(bytes([56, 0x12]) + build(48) + encode_compressed([(0, 1, 2)], 0x12) + build(18))
            body += build(17, address=place)
    frame.render(body)
    recorder.frame(1, lambda: None)
    recorder.close()
    return recorder.capture


OWN = (0xFF0000C0, 0xFF00C000, 0xFFC00000)
"""Colours of the triangles of `own_lists`."""


def _drawn(job: Job, program: str, uniforms: bytes, corners: bytes, varyings: int) -> bytes:
    """Records that draw a triangle."""
    shape = 1, 12 + 4 * varyings, len(uniforms) // 4, varyings
    record = struct.pack("<BBBBIII", *shape, job.program(program), job.put(uniforms), job.put(corners))
    return build(65, address=job.put(record)) + build(33, mode=4, length=3, first=0)


def scene(multisample: bool) -> JobsCapture:
    """One frame of `DRAWS`, each a triangle over the same pixels, captured."""
    job = Job(width=SIZE, height=SIZE, tile=(32, 32) if multisample else (64, 64))
    config = BOTH_FACES | LESS | Z_UPDATE | (OVERSAMPLE_4X if multisample else 0)
    body = viewport(job, config)
    for depth, program, uniforms in DRAWS:
        corners = b"".join(nv_vertex(*place, depth, 1.0) for place in ((3, 5), (77.3, 11.2), (20.7, 75)))
        body += _drawn(job, program, struct.pack(f"<{len(uniforms)}I", *uniforms), corners, 0)
    mode = {"multisample": int(multisample)}
    start, end, lists = job.binning(body, **mode)
    surface = job.room(4 * SIZE * SIZE)
    rendering = job.rendering(lists, surface, CLEAR, **mode, decimate=int(multisample))
    v3d = V3D(job.memory)
    recorder = JobsRecorder(JobsCapture("made", "scene"))
    recorder.attach(v3d)
    job.run(v3d, (start, end), rendering)
    recorder.frame(1, lambda: None)
    recorder.close()
    return recorder.capture
