"""The ioctls of the vc4 driver: buffers, shaders, jobs, waiting, performance monitors."""

from __future__ import annotations

import errno
import struct
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.drm.device.gpu import Gpu, Job, PerformanceMonitor, place_in
from vc4lab.drm.kernel.built_job import Workspace
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.kernel.shader_rules import Violation
from vc4lab.drm.kernel.shaders import KnownShaders, analyse
from vc4lab.drm.objects.fences import Fence
from vc4lab.drm.objects.gem import Buffers
from vc4lab.drm.objects.gem_objects import GemObject
from vc4lab.drm.objects.memory import LISTS, LISTS_SIZE, TILE_MEMORY, TILE_MEMORY_SIZE
from vc4lab.drm.objects.syncobjs import SyncObjects
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Later, Refused, invalid, missing
from vc4lab.drm.uapi.structures import Structure
from vc4lab.drm.uapi.submit import (
    MAX_BUFFERS,
    PAGE,
    SUBMIT_FIELDS,
    Buffer,
    JobError,
    JobReporter,
    shape_of,
    submit_of,
)
from vc4lab.images.tiling import round_up
from vc4lab.jobs.dumps.hang_state import REGISTERS as HANG_REGISTERS
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.scanout.formats import T_TILED
from vc4lab.v3d.registers import BY_NAME

if TYPE_CHECKING:
    from vc4lab.drm.objects.files import OpenFile
    from vc4lab.v3d.core import V3D

PARAMETERS = {
    3: 1,  # branches
    4: 1,  # ETC1
    5: 1,  # threaded fragment shaders
    6: 1,  # fixed order of the rendering list
    7: 1,  # MADVISE
    8: 1,  # performance monitors
}
"""Beside 0, 1 and 2: the registers V3D_IDENT0 to 2."""
MAX_STREAM = 16 << 20
MAX_SHADER = 1 << 20
MAX_LABEL = 4096
MAX_WAITING = 64
"""Jobs in the queue; a program that submits more has to wait."""
WILL_NEED, DO_NOT_NEED = 0, 1
COUNTERS = 30
MAX_COUNTERS = 16
_TILE_BYTES = 64
"""At most, of the rendering list."""
MAX_SET, MAX_SETS = 1024, 64
"""Bytes of handles whose buffers are remembered, and how many such sets a file has."""
_HANDLE = struct.Struct("<I")
_Objects = tuple[tuple[GemObject, ...], tuple[Buffer, ...]]
"""The buffers of a job, and the same as the kernel's half takes them."""
_HANG_BUFFER = Structure("drm_vc4_get_hang_state_bo", "u32 handle, u32 paddr, u32 size, u32 pad")


class _Places:
    """Places for the lists of jobs that are not through; the lowest free one is taken.

    So the same few pages are written again and again: a page that is touched for the first time
    costs as much as building a job.
    """

    def __init__(self) -> None:
        self._used: deque[tuple[int, int, int]] = deque()

    def take(self, size: int, seqno: int, finished: int) -> int | None:
        """A place for a job's lists; None if the jobs before it have to end first."""
        used = self._used
        while used and used[0][2] <= finished:
            used.popleft()
        if not used and size <= LISTS_SIZE - PAGE:
            used.append((LISTS, LISTS + round_up(size, PAGE), seqno))
            return LISTS
        for start in (LISTS, *sorted(high for _, high, _ in used)):
            end = start + round_up(size, PAGE)
            if end > LISTS + LISTS_SIZE:
                return None
            if not any(low < end and start < high for low, high, _ in used):
                used.append((start, end, seqno))
                return start
        return None


class Vc4:
    """Driver-specific ioctls, from DRM_COMMAND_BASE on."""

    def __init__(
        self, v3d: V3D, gpu: Gpu, buffers: Buffers, syncobjs: SyncObjects, reporter: Reporter
    ) -> None:
        self.v3d = v3d
        self.gpu = gpu
        self.buffers = buffers
        self.syncobjs = syncobjs
        self.reporter = reporter
        self.known = KnownShaders()
        """Checked when their buffers were made, which no client can write."""
        self.hang: Job | None = None
        self._places = _Places()
        self._job_reporter = JobReporter("", reporter)
        self._held: deque[Job] = deque()

    # -- buffers -----------------------------------------------------------------------------------

    @ioctl(0x43, "VC4_CREATE_BO", "u32 size, u32 flags, u32 handle, u32 pad", render=True)
    def create_bo(self, call: Call) -> None:
        if call.args.flags or call.args.pad:
            raise invalid(f"flags 0x{call.args.flags:x}")
        target = self.buffers.create(call.args.size, "bo")
        call.args.handle = self.buffers.add_handle(call.file, target)

    @ioctl(0x44, "VC4_MMAP_BO", "u32 handle, u32 flags, u64 offset", render=True)
    def mmap_bo(self, call: Call) -> None:
        if call.args.flags:
            raise invalid(f"flags 0x{call.args.flags:x}")
        target = self._needed(call, call.args.handle)
        call.args.offset = self.buffers.offset_of(target)

    @ioctl(
        0x45, "VC4_CREATE_SHADER_BO",
        "u32 size, u32 flags, u64 data, u32 handle, u32 pad", render=True,
    )  # fmt: skip
    def create_shader_bo(self, call: Call) -> None:
        a = call.args
        if a.flags or a.pad or not a.size or a.size % 8 or a.size > MAX_SHADER:
            raise invalid(f"a shader of {a.size} bytes, flags 0x{a.flags:x}")
        code = call.read(a.data, a.size)
        target = self.buffers.create(a.size, "shader", private=True)
        memory = self.buffers.memory.guest
        memory.write(target.address, code)
        try:
            target.stream = analyse(memory, target.address, target.size)
        except Violation as violation:
            word = int.from_bytes(code[8 * violation.index : 8 * violation.index + 8], "little")
            self.reporter.report(
                violation.code,
                f"{call.file.name}: shader, instruction {violation.index} `{disassemble(word)}`: {violation}",
                block="DRM",
            )
            self.buffers.drop(self.buffers.hold(target))
            raise invalid(str(violation)) from None
        self.known.add(target.address, target.stream)
        a.handle = self.buffers.add_handle(call.file, target)

    @ioctl(0x47, "VC4_GET_PARAM", "u32 param, u32 pad, u64 value", render=True)
    def get_param(self, call: Call) -> None:
        a = call.args
        if a.pad:
            raise invalid()
        if a.param < 3:
            a.value = self.v3d.read(BY_NAME[f"IDENT{a.param}"].offset)
        elif a.param in PARAMETERS:
            a.value = PARAMETERS[a.param]
        else:
            raise invalid(f"parameter {a.param}")

    @ioctl(0x48, "VC4_SET_TILING", "u32 handle, u32 flags, u64 modifier", render=True)
    def set_tiling(self, call: Call) -> None:
        a = call.args
        if a.flags or a.modifier not in (0, T_TILED):
            raise invalid(f"modifier 0x{a.modifier:x}")
        self._lookup(call, a.handle, private="a shader's buffer").modifier = a.modifier

    @ioctl(0x49, "VC4_GET_TILING", "u32 handle, u32 flags, u64 modifier", render=True)
    def get_tiling(self, call: Call) -> None:
        a = call.args
        if a.flags or a.modifier:
            raise invalid()
        a.modifier = self._lookup(call, a.handle).modifier

    @ioctl(0x4A, "VC4_LABEL_BO", "u32 handle, u32 len, u64 name", render=True)
    def label_bo(self, call: Call) -> None:
        if not call.args.len or call.args.len > MAX_LABEL:
            raise invalid("a label without text")
        text = call.read(call.args.name, call.args.len)
        target = self._lookup(call, call.args.handle)
        target.label = text.split(b"\0")[0].decode("utf-8", "replace")

    @ioctl(0x4B, "VC4_GEM_MADVISE", "u32 handle, u32 madv, u32 retained, u32 pad", render=True)
    def gem_madvise(self, call: Call) -> None:
        a = call.args
        if a.madv not in (WILL_NEED, DO_NOT_NEED) or a.pad:
            raise invalid(f"advice {a.madv}")
        target = self._lookup(call, a.handle, private="a shader's buffer")
        target.is_needed = a.madv == WILL_NEED
        a.retained = int(not target.was_purged)

    def _lookup(self, call: Call, handle: int, private: str = "") -> GemObject:
        target = self.buffers.lookup(call.file, handle)
        if private and target.private:
            raise invalid(private)
        return target

    def _needed(self, call: Call, handle: int) -> GemObject:
        """The object of a handle, for calls to which one that is none is EINVAL, not ENOENT."""
        target = call.file.buffers.objects.get(handle)
        if target is None:
            raise invalid(f"no buffer has handle {handle}")
        return target

    # -- jobs --------------------------------------------------------------------------------------

    @ioctl(0x40, "VC4_SUBMIT_CL", SUBMIT_FIELDS, render=True)
    def submit_cl(self, call: Call) -> Later | None:
        a, file, task = call.args, call.file, call.task
        if max(a.bin_cl_size, a.shader_rec_size, a.uniforms_size) > MAX_STREAM:
            raise Refused(errno.ENOMEM, f"a stream of more than {MAX_STREAM} bytes")
        count = a.bo_handle_count
        if not 0 < count <= MAX_BUFFERS:
            raise invalid(f"{count} buffers")
        objects, buffers = self._objects(file, task.read(a.bo_handles, 4 * count))
        streams = (
            task.read(a.bin_cl, a.bin_cl_size),
            task.read(a.shader_rec, a.shader_rec_size),
            task.read(a.uniforms, a.uniforms_size),
        )
        perfmon = None
        if a.perfmonid:
            found = file.perfmons.objects.get(a.perfmonid)
            if not isinstance(found, PerformanceMonitor):
                raise missing(f"no performance monitor {a.perfmonid}")
            perfmon = found
        after = self.syncobjs.fence_of(file, a.in_sync) if a.in_sync else None
        out = self.syncobjs.lookup(file, a.out_sync) if a.out_sync else None
        shape = shape_of(call.data)
        submit = submit_of(a, shape, streams, buffers)
        size = 2 * (a.bin_cl_size + a.shader_rec_size) + a.uniforms_size
        size += shape.tiles * _TILE_BYTES + 8 * PAGE

        def go() -> int | None:
            seqno = self.gpu.submitted + 1
            if seqno - self.gpu.finished > MAX_WAITING:
                return None
            lists = self._places.take(size, seqno, self.gpu.finished)
            if lists is None:
                return None
            workspace = Workspace(TILE_MEMORY, TILE_MEMORY_SIZE, lists)
            self._job_reporter.name = f"{file.name} job {seqno}"
            self._job_reporter.place = partial(place_in, objects)
            try:
                built = build_submit(
                    submit, self.buffers.memory.guest, workspace, self._job_reporter, self.known
                )
            except JobError as error:
                raise invalid(str(error)) from None
            job = Job(seqno, file.name, built, submit, objects, after, Fence(), perfmon)
            job.lists = lists, round_up(size, PAGE)
            for target in objects:
                target.seqno = seqno
                target.holders += 1
            for index in shape.writes:
                objects[index].write_seqno = seqno
            self._held.append(job)
            if out is not None:
                out.fence = job.done
            a.seqno = seqno
            self.gpu.submit(job)
            return 0

        self.let_go()
        if go() is not None:
            return None
        for target in objects:
            self.buffers.hold(target)

        def drop() -> None:
            for target in objects:
                self.buffers.drop(target)

        return Later(go, drop=drop)

    def _objects(self, file: OpenFile, handles: bytes) -> _Objects:
        """A job's buffers. The same ones come again and again, as long as handles stay the same."""
        known = file.buffers.sets.get(handles)
        if known is None:
            known = self._look_up(file, handles)
        finished = self.gpu.finished
        for target in known[0]:
            if target.was_purged:
                raise invalid(f"{target} was purged")
            if not target.is_needed and target.seqno <= finished:
                raise invalid(f"{target} was marked as not needed by its owner")
        return known

    def _look_up(self, file: OpenFile, handles: bytes) -> _Objects:
        table = file.buffers
        try:
            objects = tuple([table.objects[handle] for (handle,) in _HANDLE.iter_unpack(handles)])
        except KeyError as key:
            raise invalid(f"no buffer has handle {key}") from None
        found = objects, tuple([target.submit for target in objects])
        if len(handles) <= MAX_SET:
            if len(table.sets) >= MAX_SETS:
                table.sets.clear()
            table.sets[handles] = found
        return found

    def let_go(self) -> None:
        """Drop what jobs held that are through."""
        while self._held and self._held[0].seqno <= self.gpu.finished:
            job = self._held.popleft()
            if job.failed and self.hang is None:
                self.hang = job  # its buffers stay until a program has looked
                continue
            for target in job.objects:
                if target.holders > 1:
                    target.holders -= 1
                else:
                    self.buffers.drop(target)

    @ioctl(0x41, "VC4_WAIT_SEQNO", "u64 seqno, u64 timeout_ns", render=True)
    def wait_seqno(self, call: Call) -> Later | int | None:
        return self._wait(call.args.seqno, call.args.timeout_ns)

    @ioctl(0x42, "VC4_WAIT_BO", "u32 handle, u32 pad, u64 timeout_ns", render=True)
    def wait_bo(self, call: Call) -> Later | int | None:
        if call.args.pad:
            raise invalid()
        target = self._needed(call, call.args.handle)
        return self._wait(target.seqno, call.args.timeout_ns)

    def _wait(self, seqno: int, timeout: int) -> Later | int | None:
        if self.gpu.finished >= seqno:
            return None
        if not timeout:
            return -errno.ETIME
        return self.gpu.wait(seqno, time.monotonic() + min(timeout / 1e9, 1e6))

    def fence_of(self, target: GemObject) -> Fence | None:
        """Done when no job uses the buffer; None if that is so already."""
        if self.gpu.finished >= target.seqno:
            return None
        return self.gpu.fence_after(target.seqno)

    # -- a job that hung ---------------------------------------------------------------------------

    @ioctl(
        0x46, "VC4_GET_HANG_STATE",
        "u64 bo, u32 bo_count, u32 start_bin, u32 start_render, "
        + ", ".join(f"u32 {name.lower()}" for name in HANG_REGISTERS)
        + ", u32[16] pad",
    )  # fmt: skip
    def get_hang_state(self, call: Call) -> None:
        a = call.args
        self.let_go()
        if self.hang is None:
            raise missing("no job hung")
        job, objects = self.hang, self.hang.objects
        count = len(objects) + len(job.kept)
        room, a.bo_count = a.bo_count, count
        if room < count:
            return
        found = self._seen(job)
        self.hang = None
        entries = [
            _HANG_BUFFER.make(
                handle=self.buffers.add_handle(call.file, target), paddr=address, size=target.size
            )
            for address, target in found
        ]
        call.write(a.bo, _HANG_BUFFER.pack_all(entries))
        a.start_bin, a.start_render = job.built.bin_start, job.built.render_start
        for name in HANG_REGISTERS:
            setattr(a, name.lower(), job.registers.get(name, 0))
        for target in objects:
            self.buffers.drop(target)

    def _seen(self, job: Job) -> list[tuple[int, GemObject]]:
        """Addresses in a job that hung, and buffers with what lay there. Raises Refused.

        Linux lets programs map shaders and its own lists to read them; here these are copies.
        """
        memory = self.buffers.memory.guest
        found: list[tuple[int, GemObject]] = [(one.address, one) for one in job.objects if not one.private]
        kept = [(one.address, memory.read(one.address, one.size)) for one in job.objects if one.private]
        made: list[GemObject] = []
        try:
            for address, data in (*kept, *job.kept):
                made.append(self.buffers.create(len(data), f"copy of 0x{address:x}"))
                memory.write(made[-1].address, data)
                found.append((address, made[-1]))
        except Refused:
            for one in made:
                self.buffers.drop(self.buffers.hold(one))
            raise
        return found

    # -- performance monitors ----------------------------------------------------------------------

    @ioctl(0x4C, "VC4_PERFMON_CREATE", "u32 id, u32 ncounters, u8[16] events", render=True)
    def perfmon_create(self, call: Call) -> None:
        a = call.args
        sources = a.events[: a.ncounters]
        if not 0 < a.ncounters <= MAX_COUNTERS or any(n >= COUNTERS for n in sources):
            raise invalid(f"counters {sources}")
        self.v3d.counters.everything = True
        a.id = call.file.perfmons.add(PerformanceMonitor(sources))

    @ioctl(0x4D, "VC4_PERFMON_DESTROY", "u32 id", render=True)
    def perfmon_destroy(self, call: Call) -> None:
        if call.file.perfmons.remove(call.args.id) is None:
            raise invalid(f"no performance monitor {call.args.id}")

    @ioctl(0x4E, "VC4_PERFMON_GET_VALUES", "u32 id, u64 values_ptr", render=True)
    def perfmon_get_values(self, call: Call) -> None:
        found = call.file.perfmons.objects.get(call.args.id)
        if not isinstance(found, PerformanceMonitor):
            raise invalid(f"no performance monitor {call.args.id}")
        mask = (1 << 64) - 1
        values = [value & mask for value in found.values]
        call.write(call.args.values_ptr, struct.pack(f"<{len(values)}Q", *values))
