"""Small pieces of work whose native calls are all made eagerly as well: `python -m` with a name.

Prints a report as JSON; see `eager_shadow.py`.
"""

import json
import random
import struct
import sys
from collections.abc import Callable

import numpy as np
from tests.support import eager_shadow

ACCESSES = 200_000
"""Of one call at most: a tile of 64 x 64 pixels has 30,000 or so."""

POINTS = ((4.0, 3.0), (11.5, 28.0), (20.0, 4.25), (29.0, 30.0), (13.0, 9.0), (24.0, 17.0))
VARYING = """
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; mov r3.8a, r0
    sbwait
    mov tlbz, rb15
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


def primitives() -> None:
    """Triangles, lines and points with a varying and depth, from lists of indices and without."""
    from tests.support.frames import Frame
    from tests.support.jobs import nv_vertex, viewport

    from vc4lab.records.control import build

    for mode in (6, 1, 0):
        frame = Frame(32, 32, engine="jit", threads=1)
        data = b"".join(nv_vertex(x, y, k / 7, 1.0, k / 6) for k, (x, y) in enumerate(POINTS))
        state = viewport(frame.job) + build(98, point_size=5.0) + build(99, line_width=3.0)
        state += frame.nv_shader(VARYING, data, 1)
        order = frame.job.put(struct.pack("<6H", 0, 1, 2, 3, 5, 4))
        indexed = build(32, mode=mode, index_type=1, length=6, address=order, maximum_index=5)
        frame.bin(state + indexed)
        frame.render(state + build(33, mode=mode, length=6, first=0))


def outlines() -> None:
    """VG primitives."""
    from tests.support.frames import RED, Frame, solid
    from tests.support.jobs import viewport
    from tests.v3d.cle.test_vg import RHT, TRIANGLES, array

    corners = POINTS[:4]
    for kind, items in ((TRIANGLES, POINTS), (RHT, (4.0, *corners))):
        frame = Frame(32, 32, engine="jit", threads=1)
        shader = frame.vg_shader(solid(RED))
        wanted = items if kind == TRIANGLES else corners
        frame.bin(viewport(frame.job) + shader + array(frame, kind, *wanted))


def textures() -> None:
    """Requests of every type and filter on noise."""
    from tests.v3d.tmu.sampling import BASE, memory, words

    from vc4lab.v3d.tmu.kernels import lookup_words, sample_words
    from vc4lab.v3d.tmu.texture_state import describe_texture
    from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

    rng = random.Random(4)
    for number in range(17):
        p0 = BASE | (number & 15) << 4 | rng.randrange(3)
        p1 = (number >> 4) << 31 | 32 << 20 | 32 << 8 | rng.randrange(8) << 4 | rng.randrange(16)
        kind, descriptor = describe_texture(p0, p1, 0, 0, 2, unknowns=DEFAULT_UNKNOWNS)
        lanes = [np.array(words([rng.uniform(-1, 2) for _ in range(16)]), np.uint32) for _ in range(4)]
        sample_words(kind, descriptor, memory(), *lanes)
    lookup_words(memory(), np.arange(16, dtype=np.uint32) * 68 + BASE)


def images() -> None:
    """Boxes in and out of tiled images of every size of texel."""
    from vc4lab.images.tile_kernels import TEXEL_BITS, copy_box
    from vc4lab.images.tiling import Tiling, image_bytes, pitch_bytes

    for bits in TEXEL_BITS:
        for tiling in (Tiling.T, Tiling.LT):
            image = np.zeros(image_bytes(40, 37, bits, tiling), np.uint8)
            rows = np.random.default_rng(bits).integers(0, 256, 40 * 40 * 8, np.uint8)
            place = image.ctypes.data, bits, tiling, pitch_bytes(40, bits, tiling)
            for to_tiles in (True, False):
                box = (3, 5, 21, 30)
                copy_box(*place, box, rows.ctypes.data, 200, to_tiles=to_tiles)


def vertices() -> None:
    """Attributes of several sizes fetched; what the interpreter's shaders sample and look up."""
    from tests.support.vertices import ARRAYS, UNIFORMS, shade, words
    from tests.v3d.vertex.test_vertex import SCALE

    from vc4lab.memory import GuestMemory
    from vc4lab.v3d.vertex.pipeline import VertexKey

    memory = GuestMemory()
    memory.write(ARRAYS, np.random.default_rng(6).integers(0, 256, 4096, np.uint8).tobytes())
    memory.write(UNIFORMS, struct.pack("<2f", 1.5, 2.0))
    for size in (12, 7, 3):
        key = VertexKey(words(SCALE), ((0, size, 0),), 12, 3, "interpreter")
        shade(memory, key, 0, 40, {0: (ARRAYS, 13)}, used=[1, 20, 40])


def programs() -> None:
    """A user program's clocks: QPUs, caches, DMA, SDRAM."""
    from tests.support.compute import DATA, END
    from tests.support.timing import timed

    program = "mov r0, unif\nmov t0s, r0\nnop ; nop ; ldtmu0\nldi vw_setup, 0x1a00\nmov vpm, r4\n"
    program += "ldi vw_setup, 0x80904000\nmov vw_addr, r0\nmov -, vw_wait\n"
    timed(program + END, [[DATA]])


SCENES: dict[str, Callable[[], None]] = {
    scene.__name__: scene for scene in (primitives, outlines, textures, images, vertices, programs)
}


def main(name: str) -> None:
    """Does one, and prints what was compared."""
    eager_shadow.watch(ACCESSES)
    SCENES[name]()
    report = {
        "compared": eager_shadow.COMPARED,
        "left": eager_shadow.LEFT,
        "different": eager_shadow.DIFFERENT,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
