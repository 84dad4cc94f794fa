"""Sync objects: containers for a fence, shared between jobs, files and the display."""

from __future__ import annotations

import errno
import os
import struct
import time

from vc4lab.drm.objects.fences import Fence, SyncFiles, SyncObject, all_of
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.supervisor.answers import Caller
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Later, Refused, found, invalid, missing
from vc4lab.drm.uapi.structures import Structure

CREATE_SIGNALED = 1
AS_SYNC_FILE = 1
WAIT_ALL, WAIT_FOR_SUBMIT = 1, 2
MAX_HANDLES = 4096

MERGE, FILE_INFO = 0xC0303E03, 0xC0383E04
_MERGE = Structure("sync_merge_data", "char[32] name, i32 fd2, i32 fence, u32 flags, u32 pad")
_FILE_INFO = Structure(
    "sync_file_info", "char[32] name, i32 status, u32 flags, u32 num_fences, u32 pad, u64 fences"
)
_FENCE_INFO = Structure(
    "sync_fence_info", "char[32] obj_name, char[32] driver_name, i32 status, u32 flags, u64 timestamp_ns"
)


class SyncObjects:
    """The ioctls of sync objects and of sync files."""

    def __init__(self) -> None:
        self.files = SyncFiles()

    def lookup(self, file: OpenFile, handle: int) -> SyncObject:
        """Raises Refused (ENOENT)."""
        return found(file.syncobjs.objects.get(handle), f"sync object has handle {handle}")

    def fence_of(self, file: OpenFile, handle: int) -> Fence:
        """The fence in a sync object. Raises Refused (ENOENT, EINVAL)."""
        fence = self.lookup(file, handle).fence
        if fence is None:
            raise invalid(f"sync object {handle} has no fence")
        return fence

    def give_file(self, caller: Caller, fence: Fence) -> int:
        """A sync file for the caller; its number there. Raises Refused."""
        descriptor = self.files.make(fence)
        try:
            return caller.give_copy(descriptor)
        finally:
            os.close(descriptor)

    def fence_in(self, caller: Caller, number: int) -> Fence:
        """The fence of a caller's sync file. Raises Refused (EINVAL)."""
        fence = self.files.find(lambda: caller.position(number))
        if fence is None:
            raise invalid("not a sync file")
        return fence

    # -- sync objects ------------------------------------------------------------------------------

    @ioctl(0xBF, "SYNCOBJ_CREATE", "u32 handle, u32 flags", render=True)
    def create(self, call: Call) -> None:
        if call.args.flags & ~CREATE_SIGNALED:
            raise invalid(f"flags 0x{call.args.flags:x}")
        fence = Fence(done=True) if call.args.flags & CREATE_SIGNALED else None
        call.args.handle = call.file.syncobjs.add(SyncObject(fence))

    @ioctl(0xC0, "SYNCOBJ_DESTROY", "u32 handle, u32 pad", render=True)
    def destroy(self, call: Call) -> None:
        if call.args.pad or call.file.syncobjs.remove(call.args.handle) is None:
            raise invalid(f"no sync object has handle {call.args.handle}")

    @ioctl(0xC1, "SYNCOBJ_HANDLE_TO_FD", "u32 handle, u32 flags, i32 fd, u32 pad", render=True)
    def handle_to_fd(self, call: Call) -> None:
        a = call.args
        if a.pad or a.flags & ~AS_SYNC_FILE:
            raise invalid(f"flags 0x{a.flags:x}")
        if a.flags & AS_SYNC_FILE:
            a.fd = self.give_file(call.task, self.fence_of(call.file, a.handle))
            return
        target = call.file.syncobjs.objects.get(a.handle)
        if target is None:
            raise invalid(f"no sync object has handle {a.handle}")
        a.fd = call.task.give(target, os.O_CLOEXEC)

    @ioctl(0xC2, "SYNCOBJ_FD_TO_HANDLE", "u32 handle, u32 flags, i32 fd, u32 pad", render=True)
    def fd_to_handle(self, call: Call) -> None:
        a = call.args
        if a.pad or a.flags & ~AS_SYNC_FILE or a.fd < 0:
            raise invalid(f"flags 0x{a.flags:x}, descriptor {a.fd}")
        if a.flags & AS_SYNC_FILE:
            fence = self.fence_in(call.task, a.fd)
            self.lookup(call.file, a.handle).fence = fence
            return
        target = call.task.find(a.fd)
        if not isinstance(target, SyncObject):
            raise invalid("not a sync object's descriptor")
        a.handle = call.file.syncobjs.add(target)

    @ioctl(
        0xC3, "SYNCOBJ_WAIT",
        "u64 handles, i64 timeout_nsec, u32 count_handles, u32 flags, u32 first_signaled, u32 pad",
        render=True,
    )  # fmt: skip
    def wait(self, call: Call) -> Later | int | None:
        a = call.args
        if a.flags & ~(WAIT_ALL | WAIT_FOR_SUBMIT):
            raise invalid(f"flags 0x{a.flags:x}")
        objects = self._objects(call)
        for target in objects:
            if target.fence is None and not a.flags & WAIT_FOR_SUBMIT:
                raise invalid("a sync object without a fence")

        def done() -> int | None:
            states = [target.fence is not None and target.fence.is_done for target in objects]
            if all(states) if a.flags & WAIT_ALL else any(states):
                a.first_signaled = states.index(True)
                return 0
            return None

        if done() is not None:
            return None
        deadline = a.timeout_nsec / 1e9  # absolute, of the monotonic clock
        if deadline <= time.monotonic():
            return -errno.ETIME
        return Later(done, min(deadline, time.monotonic() + 1e6))

    @ioctl(0xC4, "SYNCOBJ_RESET", "u64 handles, u32 count_handles, u32 pad", render=True)
    def reset(self, call: Call) -> None:
        for target in self._objects(call):
            target.fence = None

    @ioctl(0xC5, "SYNCOBJ_SIGNAL", "u64 handles, u32 count_handles, u32 pad", render=True)
    def signal(self, call: Call) -> None:
        for target in self._objects(call):
            target.fence = Fence(done=True)

    def _objects(self, call: Call) -> list[SyncObject]:
        count = call.args.count_handles
        if not 0 < count <= MAX_HANDLES:
            raise invalid(f"{count} handles")
        handles = struct.unpack(f"<{count}I", call.read(call.args.handles, 4 * count))
        return [self.lookup(call.file, handle) for handle in handles]

    # -- sync files --------------------------------------------------------------------------------

    def file_ioctl(self, caller: Caller, number: int, request: int, argument: int) -> int | None:
        """SYNC_IOC_MERGE and SYNC_IOC_FILE_INFO; None for a descriptor that is no sync file."""
        fence = self.files.find(lambda: caller.position(number))
        if fence is None:
            return None
        if request not in (MERGE, FILE_INFO):
            raise Refused(errno.ENOTTY)
        structure = _MERGE if request == MERGE else _FILE_INFO
        values = structure.parse(caller.read(argument, structure.size))
        if values.flags or values.pad:
            raise invalid()
        if request == MERGE:
            try:
                other = self.fence_in(caller, values.fd2)
            except Refused:
                raise missing("the second descriptor is not a sync file") from None
            both = all_of([fence, other])
            values.fence = self.give_file(caller, both)
        else:
            state = int(fence.is_done)
            if values.num_fences:
                one = _FENCE_INFO.make(
                    obj_name=b"vc4lab", driver_name=b"vc4", status=state,
                    timestamp_ns=int(fence.moment * 1e9) if state else 0,
                )  # fmt: skip
                caller.write(values.fences, _FENCE_INFO.pack(one))
            values.name, values.status, values.num_fences = b"vc4lab", state, 1
        caller.write(argument, structure.pack(values))
        return 0
