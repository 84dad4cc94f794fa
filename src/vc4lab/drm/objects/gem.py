"""Buffer objects: handles, names, dumb buffers, mapping, dma-bufs, those of another driver."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from vc4lab.drm.objects.dma_bufs import DmaBuf, Exporter
from vc4lab.drm.objects.gem_objects import GemObject
from vc4lab.drm.objects.memory import PAGE, GpuMemory, OutOfMemory
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Refused, found, invalid, missing
from vc4lab.drm.uapi.submit import MAX_BUFFER
from vc4lab.images.tiling import round_up

if TYPE_CHECKING:
    from vc4lab.drm.objects.files import OpenFile

MAX_DUMB_SIDE = 1 << 16
DUMB_PITCH_UNIT = 64
RETIRED_BYTES = 64 << 20
RETIRED_BUFFERS = 512
FEW_RETIRED = 16
"""So much freed memory may wait until it is looked at whether programs still map it."""


def _of_exporter(name: str) -> Any:
    """An attribute that is the exporter's."""

    def change(target: ImportedObject, value: Any) -> None:
        setattr(target.exporter, name, value)

    return property(lambda target: getattr(target.exporter, name), change)


class ImportedObject(GemObject):
    """Another driver's buffer, seen by this one: the memory stays the exporter's."""

    was_mapped = _of_exporter("was_mapped")
    seqno = _of_exporter("seqno")
    write_seqno = _of_exporter("write_seqno")
    attribute = _of_exporter("attribute")

    def __init__(self, exporter: GemObject, owner: Exporter) -> None:
        super().__init__(exporter.address, exporter.size, exporter.size, "imported")
        self.exporter = owner.hold(exporter)
        self.owner = owner

    @property
    def root(self) -> GemObject:
        return self.exporter


class NoRoom(Refused):
    """No memory is left for a buffer of `size` bytes; `private`: one of a shader."""

    def __init__(self, size: int, *, private: bool) -> None:
        super().__init__(errno.ENOMEM, f"no room for {size} bytes")
        self.size = size
        self.private = private


def check_dumb(args: Any) -> None:
    """The measures that a dumb buffer is asked for with. Raises Refused."""
    if not (args.width and args.height and args.bpp) or args.bpp > 64:
        raise invalid("a dumb buffer without pixels")
    if args.width > MAX_DUMB_SIDE or args.height > MAX_DUMB_SIDE:
        raise invalid(f"a dumb buffer of {args.width}x{args.height}")


class Buffers:
    """All buffer objects of the device, and the ioctls about them."""

    def __init__(self, memory: GpuMemory) -> None:
        self.memory = memory
        self.names: dict[int, GemObject] = {}
        self.at: dict[int, GemObject] = {}
        """Live buffers by address."""
        self.imports: dict[int, ImportedObject] = {}
        """Other drivers' buffers, by the id() of the exporter's object."""
        self.exports: dict[GemObject, DmaBuf] = {}
        """The dma-bufs that are open."""
        self._next_name = 1
        self.count = 0
        self.bytes = 0
        self.retired: list[GemObject] = []
        """Freed, but perhaps still mapped somewhere or used by a job."""
        self.retired_bytes = 0
        self._most_retired = RETIRED_BUFFERS
        self.mappings: Callable[[], list[tuple[int, int]]] = list
        """Ranges of the memory file that programs map, (start, end)."""
        self.shown: Callable[[], Iterable[GemObject]] = tuple
        """Buffers that the display reads."""
        self.finished: Callable[[], int] = lambda: 0
        """Sequence number of the last finished job."""
        self.let_go: Callable[[], None] = lambda: None
        """Drops what finished jobs still hold."""
        self.bury: Callable[[], None] = lambda: None
        """Releases what programs held that have ended."""

    # -- life --------------------------------------------------------------------------------------

    def create(self, size: int, kind: str, *, private: bool = False) -> GemObject:
        """A new object, without a holder yet. Raises Refused (ENOMEM)."""
        rounded = round_up(size, PAGE)
        if not 0 < rounded <= MAX_BUFFER:
            raise Refused(errno.ENOMEM if size else errno.EINVAL, f"a buffer of {size} bytes")
        if self.retired_bytes > RETIRED_BYTES or len(self.retired) > self._most_retired:
            self.reclaim(exact=self.retired_bytes > RETIRED_BYTES)
            self._most_retired = max(RETIRED_BUFFERS, 2 * len(self.retired))
        address = self._take(rounded, private=private)
        self.count += 1
        self.bytes += rounded
        target = self.make(address, rounded, size, kind, private)
        self.at[address] = target
        return target

    def make(self, address: int, size: int, asked: int, kind: str, private: bool) -> GemObject:
        """The driver's kind of object."""
        return GemObject(address, size, asked, kind, private=private)

    def _take(self, size: int, *, private: bool) -> int:
        lack: OSError | None = None
        ways = (self.let_go, self.bury, self.reclaim, self.purge)
        attempts: tuple[Callable[[], object], ...] = (lambda: None, *ways)
        for attempt in attempts:
            attempt()
            try:
                return self.memory.take(size, private=private)
            except OutOfMemory:
                lack = None
            except OSError as error:  # too few files, say, which what is freed gives back
                lack = error
        raise lack or NoRoom(size, private=private)

    def taken(self, file: OpenFile, *, private: bool) -> int:
        """Bytes of the buffers, of shaders or of all other kinds, that a file has handles of."""
        objects = {id(o): o for o in file.buffers.objects.values()}.values()
        return sum(o.size for o in objects if o.private == private and not o.was_purged)

    def hold(self, target: GemObject) -> GemObject:
        """One more holder."""
        target.holders += 1
        return target

    def drop(self, target: GemObject) -> None:
        """One holder less; without any the memory is free for others."""
        target.holders -= 1
        if target.holders:
            return
        if target.name:
            del self.names[target.name]
        self.count -= 1
        if isinstance(target, ImportedObject):
            self.imports.pop(id(target.exporter), None)
            target.owner.drop(target.exporter)
            return
        if target.was_purged:
            return
        del self.at[target.address]
        self.bytes -= target.size
        self.retired.append(target)
        self.retired_bytes += target.size
        if len(self.retired) <= FEW_RETIRED:
            self.reclaim(exact=False)

    def reclaim(self, *, exact: bool = True) -> None:
        """Give freed memory back that no job uses and no program maps any more.

        `exact`: also where a descriptor is of it, although its mapping is gone.
        """
        finished = self.finished()
        ranges: list[tuple[int, int]] | None = None
        left = []
        for target in self.retired:
            kept = target.seqno > finished
            if not kept and target.was_mapped and self.memory.is_held(target.address):
                if exact and ranges is None:
                    ranges = self.mappings()
                kept = ranges is None or _overlaps(target, ranges)
            if kept:
                left.append(target)
            else:
                self.memory.give(target.address, target.size, private=target.private)
                self.retired_bytes -= target.size
        self.retired = left

    def purge(self) -> None:
        """Take the memory of buffers whose owners said that they do not need it.

        Mapped or not: a program that maps one reads zeros from then on, where Linux sends SIGBUS.
        What is on the screen stays, as does what was a dma-buf.
        """
        finished, shown = self.finished(), {id(target) for target in self.shown()}
        for target in list(self.at.values()):
            if target.is_needed or target.is_shared or target.seqno > finished:
                continue
            if id(target) in shown:
                continue
            target.was_purged = True
            self.bytes -= target.size
            del self.at[target.address]
            self.memory.give(target.address, target.size, private=target.private)

    def add_handle(self, file: OpenFile, target: GemObject) -> int:
        """A new handle of an object, whatever others the file has of it."""
        handle = file.buffers.add(self.hold(target))
        file.handles_of[id(target)] = file.handles_of.get(id(target), 0) + 1
        return handle

    def lookup(self, file: OpenFile, handle: int) -> GemObject:
        """The object of a handle. Raises Refused (ENOENT)."""
        target = file.buffers.objects.get(handle)
        if target is None:
            raise missing(f"no buffer has handle {handle}")
        return target

    def close_handle(self, file: OpenFile, handle: int) -> None:
        """Free a handle. Raises Refused (EINVAL)."""
        target = file.buffers.remove(handle)
        if target is None:
            raise invalid(f"no buffer has handle {handle}")
        file.handles_of[id(target)] -= 1
        if not file.handles_of[id(target)]:
            del file.handles_of[id(target)]
        primes = file.primes.get(id(target), [])
        if handle in primes:
            primes.remove(handle)
            if not primes:
                del file.primes[id(target)]
        self.drop(target)

    def released(self, file: OpenFile) -> None:
        """The file is gone with its handles."""
        for handle in list(file.buffers.objects):
            self.close_handle(file, handle)

    def find_mapping(self, file: OpenFile, offset: int, size: int) -> GemObject | None:
        """The file's buffer whose pages these are."""
        first = self.at.get(offset)
        candidates = [first] if first is not None and id(first) in file.handles_of else None
        for target in candidates or file.buffers.objects.values():
            inside = target.address <= offset and offset + size <= target.address + target.size
            if inside and not target.was_purged:  # its place may be another one's
                return target
        return None

    def offset_of(self, target: GemObject) -> int:
        """The offset at which a buffer is mapped. Raises Refused (EINVAL) for what clients must not see."""
        if target.private or target.was_purged:
            raise invalid("a shader's or a purged buffer cannot be mapped")
        return target.address

    # -- ioctls ------------------------------------------------------------------------------------

    @ioctl(0x09, "GEM_CLOSE", "u32 handle, u32 pad", direction=1, render=True)
    @ioctl(0xB4, "MODE_DESTROY_DUMB", "u32 handle")
    def gem_close(self, call: Call) -> None:
        self.close_handle(call.file, call.args.handle)

    @ioctl(0x0A, "GEM_FLINK", "u32 handle, u32 name", authenticated=True)
    def gem_flink(self, call: Call) -> None:
        target = self.lookup(call.file, call.args.handle)
        if not target.name:
            target.name = self._next_name
            self._next_name += 1
            self.names[target.name] = target
        call.args.name = target.name

    @ioctl(0x0B, "GEM_OPEN", "u32 name, u32 handle, u64 size", authenticated=True)
    def gem_open(self, call: Call) -> None:
        name = call.args.name
        target = found(self.names.get(name), f"buffer has the name {name}")
        call.args.handle = self.add_handle(call.file, target)
        call.args.size = target.size

    @ioctl(
        0xB2, "MODE_CREATE_DUMB",
        "u32 height, u32 width, u32 bpp, u32 flags, u32 handle, u32 pitch, u64 size",
    )  # fmt: skip
    def create_dumb(self, call: Call) -> None:
        a = call.args
        check_dumb(a)
        pitch = round_up(a.width * -(-a.bpp // 8), DUMB_PITCH_UNIT)
        target = self.create(pitch * a.height, "dumb")
        a.handle, a.pitch, a.size = self.add_handle(call.file, target), pitch, target.size

    @ioctl(0xB3, "MODE_MAP_DUMB", "u32 handle, u32 pad, u64 offset")
    def map_dumb(self, call: Call) -> None:
        call.args.offset = self.offset_of(self.lookup(call.file, call.args.handle))

    @ioctl(0x2D, "PRIME_HANDLE_TO_FD", "u32 handle, u32 flags, i32 fd", render=True)
    def handle_to_fd(self, call: Call) -> None:
        if call.args.flags & ~(os.O_CLOEXEC | os.O_RDWR):
            raise invalid(f"flags 0x{call.args.flags:x}")
        target = self.lookup(call.file, call.args.handle)
        if target.private:
            raise invalid("a shader's buffer cannot be exported")
        if not target.is_needed or target.was_purged:
            raise invalid(f"{target} was marked as not needed by its owner")
        if isinstance(target, ImportedObject):
            exported = target.owner.export(target.exporter)
        else:
            exported = self.export(target)
        try:
            call.args.fd = call.task.give(exported, call.args.flags & os.O_CLOEXEC)
        except (Refused, OSError):
            if not exported.descriptions:
                exported.owner.dma_buf_released(exported)
            raise
        primes = call.file.primes.setdefault(id(target), [])
        if call.args.handle not in primes:
            primes.append(call.args.handle)

    def export(self, target: GemObject) -> DmaBuf:
        """The dma-buf of a buffer of this driver; the same one while it is open."""
        if target not in self.exports:
            self.exports[target] = DmaBuf(target, self)
            self.hold(target)
            target.is_shared = True
        return self.exports[target]

    @ioctl(0x2E, "PRIME_FD_TO_HANDLE", "u32 handle, u32 flags, i32 fd", render=True)
    def fd_to_handle(self, call: Call) -> None:
        number = call.args.fd
        there = call.task.find(number) if number >= 0 else None
        if not isinstance(there, DmaBuf):
            raise Refused(errno.EBADF if there is None else errno.EINVAL, "not one of our dma-bufs")
        target = there.object if there.owner is self else self.import_buffer(there)
        primes = call.file.primes.setdefault(id(target), [])
        if not primes:
            primes.append(self.add_handle(call.file, target))
        call.args.handle = primes[0]

    def import_buffer(self, buffer: DmaBuf) -> ImportedObject:
        """Another driver's buffer, without a holder yet. Raises Refused (EINVAL)."""
        if contiguous_size(buffer.pieces) < buffer.object.size:
            raise invalid("the buffer is not contiguous")
        known = self.imports.get(id(buffer.object))
        if known is None:
            known = self.imports[id(buffer.object)] = self.make_import(buffer)
            self.count += 1
        return known

    def make_import(self, buffer: DmaBuf) -> ImportedObject:
        """The driver's kind of imported object."""
        return ImportedObject(buffer.object, buffer.owner)

    def dma_buf_released(self, buffer: DmaBuf) -> None:
        """The last descriptor of a dma-buf is gone."""
        if self.exports.get(buffer.object) is buffer:
            del self.exports[buffer.object]
        buffer.close()
        self.drop(buffer.object)


def contiguous_size(pieces: list[tuple[int, int]]) -> int:
    """Bytes of a scatter table, (address, size) each, up to its first gap."""
    total = 0
    for address, size in pieces:
        if address != pieces[0][0] + total:
            break
        total += size
    return total


def _overlaps(target: GemObject, ranges: list[tuple[int, int]]) -> bool:
    end = target.address + target.size
    return any(low < end and target.address < high for low, high in ranges)
