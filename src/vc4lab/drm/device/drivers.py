"""The driver of each node: its open files, its buffers, its table of ioctls."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.drm.objects.core import CAPABILITIES, Core
from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.gem import Buffers, NoRoom
from vc4lab.drm.supervisor.answers import Caller
from vc4lab.drm.uapi.ioctls import READ, WRITE, Call, Ioctl, Result
from vc4lab.drm.uapi.numbers import DRM_TYPE
from vc4lab.drm.uapi.results import Later, Refused

NAMES = ("vc4", "xlnx")
"""Values of `--device`: the driver of the display."""
SYNC_OBJECTS = 0x13
OPTIONAL = range(0xA0, 0xCF)
"""Numbers of calls that Linux knows and answers with EOPNOTSUPP where a driver has no display, no
sync objects or none with time lines; numbers that it does not know are EINVAL."""

Trace = Callable[[str], None]
Table = dict[int, tuple[Ioctl, Callable[[Call], Result]]]


@dataclass
class Driver:
    """One driver of the kernel; the same number may mean different calls to two of them."""

    core: Core
    buffers: Buffers
    on_strict: Callable[[StrictStop], None]
    reporter: Reporter
    table: Table = field(default_factory=dict)

    def ioctl(
        self, opened: OpenFile, caller: Caller, request: int, argument: int, trace: Trace | None
    ) -> int | Later:
        """Copy the argument in, call the handler, copy the results out. Raises Refused.

        Results are copied out whatever the handler's answer is. Source: Linux drm_ioctl.c, drm_ioctl.
        """
        if request >> 8 & 0xFF != DRM_TYPE:
            raise Refused(errno.ENOTTY)
        found = self.table.get(request & 0xFF)
        if found is None:
            if trace is not None:
                trace(f"{opened}: ioctl 0x{request & 0xFF:02x}: not there")
            raise Refused(errno.EOPNOTSUPP if request & 0xFF in OPTIONAL else errno.EINVAL)
        declared, handler = found
        size, structure = request >> 16 & 0x3FFF, declared.structure
        directions = request >> 30 & declared.direction
        data = caller.read(argument, size) if directions & WRITE and size else b""
        known, rest = data[: structure.size].ljust(structure.size, b"\0"), data[structure.size :]
        call = Call(opened, caller, structure.parse(known), known)

        def finish(result: int) -> int:
            if directions & READ and size:
                answer = structure.pack(call.args) + rest
                caller.write(argument, answer[:size].ljust(size, b"\0"))
            return result

        try:
            try:
                self._check_rights(opened, declared)
                result = handler(call)
            except NoRoom as lack:
                self._report_lack(opened, lack)
                finish(0)
                raise
            except StrictStop as stop:
                self.on_strict(stop)
                raise Refused(errno.EINVAL, str(stop)) from None
            except Refused:
                finish(0)
                raise
            if isinstance(result, Later):
                if trace is not None:
                    trace(f"{opened}: {call.args} waits")
                finish(0)  # a call that a signal interrupts begins anew with these
                return _then(result, finish) if result.when is None else result
            answer = finish(result or 0)
        except Refused as refused:
            if trace is not None:
                name = errno.errorcode.get(refused.number, str(refused.number))
                trace(f"{opened}: {call.args} = {name} ({refused})")
            raise
        if trace is not None:
            name = errno.errorcode.get(-answer, str(-answer)) if answer < 0 else str(answer)
            trace(f"{opened}: {call.args} = {name}")
        return answer

    @staticmethod
    def _check_rights(opened: OpenFile, declared: Ioctl) -> None:
        """Whether the file may make the call. Raises Refused (EACCES)."""
        if declared.master and not opened.is_master:
            raise Refused(errno.EACCES, "another file has the display")
        if declared.authenticated and not opened.is_authenticated:
            raise Refused(errno.EACCES, "the display's owner has not let this file in")
        if opened.is_render and not declared.render:
            raise Refused(errno.EACCES, "not on a render node")

    def _report_lack(self, file: OpenFile, lack: NoRoom) -> None:
        """Once a file: programs go on without the buffer, and few of them say so."""
        if file.lacked_memory:
            return
        file.lacked_memory = True
        memory = self.buffers.memory
        place = memory.shaders if lack.private else memory.clients
        most, holder = max(
            (self.buffers.taken(one, private=lack.private), number, one)
            for number, one in enumerate(self.core.files)
        )[::2]
        self.reporter.report(
            "DRM-026",
            f"{file.name}: no memory for a {'shader' if lack.private else 'buffer'} of "
            f"{lack.size} bytes: {place.used >> 20} of {place.size >> 20} MiB are in use, "
            f"{most >> 20} by {holder.name}",
            block="DRM",
        )


def core_of(name: str, unique: str) -> Core:
    """The ioctls by which a driver describes itself."""
    if name == "vc4":
        texts = "vc4", "20140616", "Broadcom VC4 graphics"
        return Core(texts, unique, (0, 0, 0), CAPABILITIES)
    texts = "xlnx", "20130509", "Xilinx DRM KMS Driver"
    return Core(texts, unique, (1, 0, 0), {**CAPABILITIES, SYNC_OBJECTS: 0})


def _then(later: Later, finish: Callable[[int], int]) -> Later:
    """Wait as `later` does, with results written back at its end."""

    def done() -> int | None:
        result = later.done()
        return None if result is None else finish(result)

    return Later(done, later.deadline, later.late, later.watch, later.drop)
