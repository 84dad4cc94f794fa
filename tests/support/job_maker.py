"""Jobs built by the kernel's half, recorded ones and jobs made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.built_job import BuiltJob, Workspace
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.kernel.shaders import KnownShaders
from vc4lab.drm.recorded.jobs import RecordedJob, RecordedRun
from vc4lab.drm.uapi.submit import JobError, Submit, Surface
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records import declarations as d
from vc4lab.records.control import build
from vc4lab.records.shader import Attribute, GlShader, GlShaderRecord
from vc4lab.records.states import GlShaderState

DATA = Path(__file__).parents[1] / "data"
RUNS = [
    path
    for folder in ("vc4-jobs", "vc4-conformance")
    for path in sorted((DATA / folder).iterdir())
    if any(path.glob("job*"))
]


SIZE = 1 << 20


class Builder:
    """A job's buffers in memory."""

    def __init__(self, memory: GuestMemory, known: KnownShaders, place: int) -> None:
        self.memory = memory
        self.known = known
        self.workspace = Workspace.at(place)

    @classmethod
    def of(cls, job: RecordedJob) -> Builder:
        run = job.run
        assert job.submit is not None
        assert run.workspace is not None
        run.contents.load(job.submit.buffers, run.memory)
        return cls(run.memory, run.known, run.workspace)

    def build(self, submit: Submit) -> tuple[BuiltJob | None, bytes, list[str]]:
        """What is built, its bytes with zeros around, and what was reported."""
        lists = self.workspace.lists
        self.memory.fill(lists, SIZE)
        reporter = Reporter()
        built: BuiltJob | None = None
        try:
            built = build_submit(submit, self.memory, self.workspace, reporter, self.known)
        except JobError:
            return None, b"", [str(item) for item in reporter.items]
        assert built.render_end - lists < SIZE
        return built, self.memory.read(lists, SIZE), [str(item) for item in reporter.items]

    def accepts(self, submit: Submit) -> bool:
        return self.build(submit)[0] is not None


NOTHING = "nop ; nop ; thrend\nnop\nnop\n"
LOOKUP = "max r0, r0, 0 ; nop\nmin r1, r0, unif ; nop\nadd t0s, r1, unif ; nop\n"
CUBE = "mov t0b, r0 ; nop\nmov t0r, r0 ; nop\nmov t0t, r0 ; nop\nmov t0s, r0 ; nop\n"
RESET = "ldi r0, 4\nadd unif_addr, r0, unif ; nop\nmov r1, unif ; nop\n"
SWITCH = "nop ; nop ; thrsw\nnop\nnop\n"
BUFFERS, PAGE = 0x10000000, 4096


class Maker:
    """Jobs made by hand: shaders and one buffer for everything else."""

    def __init__(self) -> None:
        self.memory = GuestMemory()
        self.builder = Builder(self.memory, KnownShaders(self.memory), 1 << 20)
        run = RecordedRun(DATA / "vc4-jobs" / "tri_arm64")
        assert run.jobs[0].submit is not None
        self.model = run.jobs[0].submit
        self.buffers = [replace(self.model.buffers[0], address=BUFFERS, size=SIZE, shader=False)]

    def shader(self, text: str) -> int:
        """The index of a buffer with that program."""
        address = BUFFERS + SIZE + PAGE * len(self.buffers)
        code = b"".join(word.to_bytes(8, "little") for word in assemble(text + NOTHING).words)
        self.memory.write(address, code)
        self.buffers.append(replace(self.buffers[0], address=address, size=PAGE, shader=True))
        return len(self.buffers) - 1

    def job(
        self, shaders: list[int], uniforms: list[int], count: int = 1, extended: bool = False,
        stride: int = 16, highest: int = 9, **fields: Any,
    ) -> Submit:  # fmt: skip
        """A job of one draw with `count` arrays."""
        single = self.single
        record = GlShader(
            GlShaderRecord.make(fs_single_threaded=single),
            tuple(Attribute(16 * n, 12, stride, n, n) for n in range(count)),
            extended,
        )
        indices = [*shaders, *[0] * count]
        records = b"".join(index.to_bytes(4, "little") for index in indices) + record.to_bytes()
        body = build(d.TileBinningMode, tiles_x=1, tiles_y=1) + build(d.StartTileBinning)
        body += build(GlShaderState, attributes=count & 7, extended=extended)
        body += build(d.GemHandles)
        body += build(d.IndexedPrimitives, index_type=1, length=6, address=32, maximum_index=3)
        body += build(d.VertexArrayPrimitives, length=highest + 1)
        body += build(d.IncrementSemaphore) + build(d.Flush)
        base: dict[str, Any] = {
            "bin_cl": body, "shader_rec": records, "buffers": tuple(self.buffers),
            "uniforms": b"".join(word.to_bytes(4, "little") for word in uniforms),
            "shader_rec_count": 1, "width": 64, "height": 64, "min_x_tile": 0, "min_y_tile": 0,
            "max_x_tile": 0, "max_y_tile": 0, "surfaces": {"color_write": Surface(0, 0, 4, 0)},
        }  # fmt: skip
        return replace(self.model, **(base | fields))

    single = 1
