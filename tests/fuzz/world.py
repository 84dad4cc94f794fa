"""Guarded guest memory, and scenes: whole frames ready to be damaged and run.

A scene is made once, kept as the bytes of its pages, and put back before every case.
"""

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, Job, nv_vertex, viewport
from tests.support.programs import GOURAUD

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import WORKSPACE
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.memory.guest import PAD
from vc4lab.qpu.program.reader import program_at
from vc4lab.records.control import build, parse_list
from vc4lab.records.declarations import Nop, WaitSemaphore
from vc4lab.records.shader import NvShaderRecord, parse_gl_state
from vc4lab.timing.frames.feed import FrameFeed
from vc4lab.timing.frames.fragment_vectors import fragment_vectors
from vc4lab.timing.frames.frame import Frame
from vc4lab.timing.frames.vertex_batches import rendering_batches
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import REGISTERS

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"
PAGE = 4096
_DONTNEED = 4

BPOA, BPOS = 0x308, 0x30C


@functools.cache
def memory() -> GuestMemory:
    """The one guarded memory of this process."""
    return GuestMemory(guard=True)


def clear() -> None:
    """All of guest memory is zero again, its pages given back."""
    library = ctypes.CDLL(None, use_errno=True)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert library.madvise(memory().base, MEMORY_SIZE + PAD, _DONTNEED) == 0


@dataclass
class Scene:
    """A frame in memory: pages, the two lists, and where its parts lie."""

    pages: list[tuple[int, bytes]]
    binning: tuple[int, int]
    rendering: tuple[int, int]
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name → (address, bytes) of what may be damaged."""

    def data(self, part: str) -> tuple[int, bytes]:
        """Address and contents of a part."""
        address, size = self.parts[part]
        out = bytearray(size)
        for start, data in self.pages:
            low, high = max(start, address), min(start + len(data), address + size)
            if low < high:
                out[low - address : high - address] = data[low - start : high - start]
        return address, bytes(out)

    def restore(self, edits: Sequence[tuple[int, bytes]] = ()) -> None:
        """Puts the scene into memory, damage on top."""
        clear()
        target = memory()
        for address, data in self.pages:
            target.write(address, data)
        for address, data in edits:
            target.write(address, data)


def pages(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, bytes]]:
    """The pages of these (start, end) ranges that are not zero, neighbours joined."""
    source, found = memory(), []
    zero = bytes(PAGE)
    wanted = sorted({p for start, end in ranges for p in range(start // PAGE, -(-end // PAGE))})
    for number in wanted:
        data = source.read(number * PAGE, PAGE)
        if data == zero:
            continue
        if found and found[-1][0] + len(found[-1][1]) == number * PAGE:
            found[-1] = (found[-1][0], found[-1][1] + data)
        else:
            found.append((number * PAGE, data))
    return found


# -- making scenes -------------------------------------------------------------------------------

END = """
    nop ; nop ; sbwait
    mov tlbz, rb15
    mov tlbc, r3 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
COLOURED = GOURAUD + END
TEXTURED = (
    """
    mov r0, vary
    fmul r0, r0, ra15
    fadd r0, r0, r5 ; mov r1, vary
    nop
    fmul r1, r1, ra15
    fadd t0t, r1, r5
    nop
    mov t0s, r0
    mov r2, vary ; nop ; ldtmu0
    mov r3, r4
"""
    + END
)
FOUR_PARAMETERS = TEXTURED.replace("mov t0s, r0", "mov t0b, r1\n    mov t0r, r0\n    mov t0s, r0")


def _small(text: str, textured: bool) -> Scene:
    """One NV quad of 128x128 pixels."""
    clear()
    job = Job(memory())
    code = job.program(text)
    corners = [(4, 4, 0, 0), (120, 9, 1, 0), (9, 118, 0, 1), (125, 122, 1, 1)]
    vertices = job.put(b"".join(nv_vertex(x, y, 0.5, 0.8, s, t, s) for x, y, s, t in corners))
    texture = job.room(64 * 64 * 4 * 2, 4096)
    memory().write(texture, bytes(i * 7 & 0xFF for i in range(64 * 64 * 4 * 2)))
    uniforms = job.put(struct.pack("<4I", texture, 64 << 20 | 64 << 8 | 1 << 7, 0, 0))
    record = NvShaderRecord.make(stride=24, varyings=3, code=code, uniforms=uniforms, vertices=vertices)
    shader = job.put(record.to_bytes())
    indices = job.put(bytes((0, 1, 2, 2, 1, 3)))
    body = viewport(job, 0x0070_03)
    body += build(65, address=shader)
    body += build(32, mode=4, index_type=0, length=6, address=indices, maximum_index=3)
    body += build(33, mode=5, length=4, first=0)
    start, end, lists = job.binning(body)
    surface = job.room(job.width * job.height * 4)
    rendering = job.rendering(lists, surface)
    parts = {
        "binning": (start, end - start),
        "rendering": (rendering[0], rendering[1] - rendering[0]),
        "records": (shader, 16),
        "fragment": (code, len(program_at(memory(), code).words) * 8),
        "vertices": (vertices, 24 * 4),
        "uniforms": (uniforms, 16),
        "lists": (lists, 4 * 32 + 0x1000),
        "indices": (indices, 6),
    }
    if not textured:
        del parts["uniforms"]
    return Scene(pages([(0x10_0000, job.top)]), (start, end), rendering, parts)


def _recorded(name: str, number: int) -> Scene:
    """A job of a recorded run."""
    clear()
    run = RecordedRun(JOBS / name)
    built = run.jobs[number].build(memory())
    submit = run.jobs[number].submit
    assert submit is not None
    assert run.workspace is not None
    ranges = [(b.address, b.address + b.size) for b in submit.buffers]
    parts = {
        "binning": (built.bin_start, built.bin_end - built.bin_start),
        "rendering": (built.render_start, built.render_end - built.render_start),
    }
    for record in parse_list(memory().read, built.bin_start, built.bin_end):
        if record.id == 112:
            mode = record.payload
            assert mode is not None
            parts["lists"] = (mode.address, 32 * mode.tiles_x * mode.tiles_y + 0x1000)
        if record.id == 64:
            state: Any = record.payload
            shader = parse_gl_state(memory().read, state)
            gl = shader.record
            size = 36 + 8 * len(shader.attributes)
            parts["records"] = (state.address, size)
            for stage in ("fs", "vs", "cs"):
                code = getattr(gl, f"{stage}_code")
                size = len(program_at(memory(), code).words) * 8
                parts[{"fs": "fragment", "vs": "vertex", "cs": "coordinate"}[stage]] = (code, size)
                parts[f"uniforms_{stage}"] = (getattr(gl, f"{stage}_uniforms"), 128)
    ranges.append((run.workspace, run.workspace + WORKSPACE))
    found = pages(ranges)
    return Scene(found, (built.bin_start, built.bin_end), (built.render_start, built.render_end), parts)


SCENES: dict[str, Callable[[], Scene]] = {
    "coloured": lambda: _small(COLOURED, False),
    "textured": lambda: _small(TEXTURED, True),
    "cubemap": lambda: _small(FOUR_PARAMETERS, True),
    "triangle": lambda: _recorded("tri_arm64", 0),
    "mipmap": lambda: _recorded("glmark2_texture_texture-filter_mipmap", 2),
    "crate": lambda: _recorded("glmark2_texture_texture-filter_nearest", 1),
    "horse": lambda: _recorded("glmark2_build_use-vbo_true", 1),
    "cube": lambda: _recorded("kmscube_smooth", 1),
}
SMALL = ("coloured", "textured", "triangle", "mipmap")


@functools.cache
def scene(name: str) -> Scene:
    """A scene by name, made at first use. A name ending in +binned has its tile lists already."""
    plain, _, binned = name.partition("+")
    if not binned:
        return SCENES[plain]()
    before = scene(plain)
    before.restore()
    v3d = device()
    submit(v3d, binning=before.binning)
    lists, size = before.parts["lists"]
    for record in parse_list(memory().read, *before.rendering):
        if record.id == WaitSemaphore.id:  # nothing would increment it
            memory().set_u8(record.address, Nop.id)
    ranges = [(a, a + len(d)) for a, d in before.pages] + [(lists - 0x8000, lists + size)]
    return Scene(pages(ranges), (0, 0), before.rendering, before.parts)


# -- running -------------------------------------------------------------------------------------


def device(*, fed: bool = False, **options: Any) -> V3D:
    """A V3D on the guarded memory; `fed`: with a feed of frames, whose tables fit together."""
    options.setdefault("threads", 1)
    v3d = V3D(memory(), Reporter(options.pop("strict", False)), **options)
    if fed:
        FrameFeed(v3d, check_frame).__enter__()  # as long as there is the V3D
    return v3d


def check_frame(frame: Frame) -> None:
    """The tables of a frame fit together, so that those who read them need not look."""
    totals, lists, tiles = frame.totals(), frame.lists, frame.tiles
    assert totals["covered_quads"] == totals["quads_valid"]
    assert int(lists["blocks"].sum()) == len(frame.blocks)
    assert int(lists["vertices"].sum()) == len(frame.vertices)
    assert frame.first_request[-1] == len(frame.requests)
    assert frame.first_line[-1] == len(frame.lines)
    assert (lists["tile"] < len(tiles)).all()
    assert (lists["draw"] < len(frame.draws)).all()
    assert (frame.draws["program"] < len(frame.programs)).all()
    assert int(tiles["ops"].sum()) == len(frame.ops)
    for early_z in (False, True):
        assert fragment_vectors(frame, early_z=early_z).rejected >= 0
    batches = rendering_batches(frame)
    assert int(batches.first_batch[-1]) == len(batches.sizes)
    for binning in frame.binnings:
        assert int(binning.draws["vertices"].sum()) == len(binning.vertices)


def submit(
    v3d: V3D,
    binning: tuple[int, int] = (0, 0),
    rendering: tuple[int, int] = (0, 0),
    overspill: tuple[int, int] = (0, 0),
) -> None:
    """Starts the lists as a program does, gives overspill memory once, reads every register."""
    for address, value in zip((CT0CA, CT0EA, CT1CA, CT1EA), (*binning, *rendering), strict=True):
        v3d.write(address, value)
    if overspill[1]:
        v3d.write(BPOA, overspill[0])
        v3d.write(BPOS, overspill[1])
    for register in REGISTERS:
        v3d.read(register.offset)
    assert v3d.waiting is None or v3d.waiting
