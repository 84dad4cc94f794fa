"""The ioctls of input devices (type 'E'), as the kernel's evdev answers them."""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from vc4lab.drm.input.devices import Axis, EvdevDevice, EvdevFile, bit_set
from vc4lab.drm.supervisor.answers import Caller
from vc4lab.drm.uapi import evdev as e
from vc4lab.drm.uapi.ioctls import READ, WRITE, declared_by, ioctl
from vc4lab.drm.uapi.numbers import EVDEV_TYPE
from vc4lab.drm.uapi.results import Refused, invalid

_MAX_MASK = 1 << 16
"""More than any type has codes."""
_AXIS = tuple(e.ABSINFO.names)
evdev_ioctl = partial(ioctl, direction=READ)
"""Declares the handler of one of these ioctls. Bytes that it returns are cut to the program's room
and stored, and their number is the result."""


@dataclass(slots=True)
class EvdevCall:
    """One ioctl on an input device."""

    file: EvdevFile
    task: Caller
    number: int
    room: int
    """Bytes of the argument as the program's request says."""
    argument: int
    """The argument itself: an address, or a number where the kernel takes one."""
    args: Any = field(default=None)
    """Values of the declared structure, where there is one."""


class EvdevIoctls:
    """Handlers by direction and number; one for all devices."""

    def __init__(self) -> None:
        self.table = {
            (declared.direction, number): (declared, handler)
            for declared, handler in declared_by(self)
            for number in range(declared.number, declared.number + declared.numbers)
        }

    def answer(self, file: EvdevFile, caller: Caller, request: int, argument: int) -> int:
        """An ioctl on an input device. Raises Refused."""
        if file.is_revoked:
            raise Refused(errno.ENODEV)
        number, room = request & 0xFF, request >> 16 & 0x3FFF
        if request >> 8 & 0xFF != EVDEV_TYPE:
            raise Refused(errno.ENOTTY)
        found = self.table.get((request >> 30, number))
        if found is None:
            raise invalid(f"ioctl 'E' 0x{number:02x}")
        declared, handler = found
        size = declared.structure.size
        if not declared.any_size and room != size:
            raise invalid(f"{declared.name} with {room} bytes")
        call = EvdevCall(file, caller, number, room, argument)
        if not declared.any_size and not declared.by_value:
            data = caller.read(argument, size) if declared.direction & WRITE else bytes(size)
            call.args = declared.structure.parse(data)
        result = handler(call)
        if isinstance(result, bytes):
            data = result[:room]
            if data:
                caller.write(argument, data)
            return len(data)
        if call.args is not None and declared.direction & READ:
            caller.write(argument, declared.structure.pack(call.args))
        return result or 0

    # -- what it is --------------------------------------------------------------------------------

    @evdev_ioctl(0x01, "EVIOCGVERSION", "i32 version")
    def version(self, call: EvdevCall) -> None:
        call.args.version = e.VERSION

    @evdev_ioctl(0x02, "EVIOCGID", e.ID_FIELDS)
    def identity(self, call: EvdevCall) -> None:
        a = call.args
        a.bustype, a.vendor, a.product, a.version = call.file.device.identity

    @evdev_ioctl(0x06, "EVIOCGNAME", any_size=True)
    def name(self, call: EvdevCall) -> bytes:
        return call.file.device.name.encode() + b"\0"

    @evdev_ioctl(0x07, "EVIOCGPHYS", any_size=True)
    def place(self, call: EvdevCall) -> bytes:
        return call.file.device.place.encode() + b"\0"

    @evdev_ioctl(0x08, "EVIOCGUNIQ", any_size=True)
    def unique(self, call: EvdevCall) -> None:
        raise Refused(errno.ENOENT, "the device has no serial number")

    @evdev_ioctl(0x09, "EVIOCGPROP", any_size=True)
    def properties(self, call: EvdevCall) -> bytes:
        return bit_set((), e.PROPERTIES)

    @evdev_ioctl(0x20, "EVIOCGBIT", any_size=True, numbers=0x20)
    def bits(self, call: EvdevCall) -> bytes:
        kind = call.number - 0x20
        if kind not in e.CODES:
            raise invalid(f"type {kind}")
        return call.file.device.bits(kind)

    @evdev_ioctl(0x84, "EVIOCGEFFECTS", "i32 count")
    def effects(self, call: EvdevCall) -> None:
        call.args.count = 0

    # -- its state ---------------------------------------------------------------------------------

    @evdev_ioctl(0x18, "EVIOCGKEY", any_size=True)
    @evdev_ioctl(0x19, "EVIOCGLED", any_size=True)
    @evdev_ioctl(0x1A, "EVIOCGSND", any_size=True)
    @evdev_ioctl(0x1B, "EVIOCGSW", any_size=True)
    def states(self, call: EvdevCall) -> bytes:
        kinds = {0x18: e.EV_KEY, 0x19: e.EV_LED, 0x1A: e.EV_SND, 0x1B: e.EV_SW}
        return call.file.device.states(kinds[call.number])

    @evdev_ioctl(0x40, "EVIOCGABS", any_size=True, numbers=0x40)
    def axis(self, call: EvdevCall) -> bytes:
        axes = call.file.device.axes
        if not axes:
            raise invalid("no absolute axes")
        axis = axes.get(call.number - 0x40, Axis(0, 0, 0))
        return e.ABSINFO.pack(e.ABSINFO.make(**{name: getattr(axis, name) for name in _AXIS}))

    @evdev_ioctl(0xC0, "EVIOCSABS", any_size=True, direction=WRITE, numbers=0x40)
    def set_axis(self, call: EvdevCall) -> None:
        device = call.file.device
        if not device.axes:
            raise invalid("no absolute axes")
        data = call.task.read(call.argument, min(call.room, e.ABSINFO.size))
        values = e.ABSINFO.parse(data.ljust(e.ABSINFO.size, b"\0"))
        axis = device.axes.get(call.number - 0xC0)
        if axis is not None:
            for name in _AXIS:
                setattr(axis, name, getattr(values, name))

    @evdev_ioctl(0x0A, "EVIOCGMTSLOTS", any_size=True)
    def touches(self, call: EvdevCall) -> None:
        raise invalid("no touch screen")

    # -- repeating, key codes, force ---------------------------------------------------------------

    @evdev_ioctl(0x03, "EVIOCGREP", "u32 delay, u32 period")
    def repeat(self, call: EvdevCall) -> None:
        device = _repeating(call)
        call.args.delay, call.args.period = device.repeat

    @evdev_ioctl(0x03, "EVIOCSREP", "u32 delay, u32 period", direction=WRITE)
    def set_repeat(self, call: EvdevCall) -> None:
        values = (call.args.delay & 0x7FFFFFFF, call.args.period & 0x7FFFFFFF)
        _repeating(call).repeat[:] = values

    @evdev_ioctl(0x04, "EVIOCGKEYCODE", "u32 scan_code, u32 key_code")
    def key_code(self, call: EvdevCall) -> None:
        raise invalid("the device has no table of scan codes")

    @evdev_ioctl(0x80, "EVIOCSFF", any_size=True, direction=WRITE)
    @evdev_ioctl(0x81, "EVIOCRMFF", "i32 effect", direction=WRITE, by_value=True)
    def change_effects(self, call: EvdevCall) -> None:
        raise Refused(errno.ENOSYS, "no force feedback")

    # -- which client gets which events ------------------------------------------------------------

    @evdev_ioctl(0x90, "EVIOCGRAB", "i32 grab", direction=WRITE, by_value=True)
    def grab(self, call: EvdevCall) -> None:
        device = call.file.device
        if call.argument:
            if device.grab is not None:
                raise Refused(errno.EBUSY, f"{device.grab} has it")
            device.grab = call.file
        elif device.grab is not call.file:
            raise invalid("it has not grabbed the device")
        else:
            device.grab = None

    @evdev_ioctl(0x91, "EVIOCREVOKE", "i32 zero", direction=WRITE, by_value=True)
    def revoke(self, call: EvdevCall) -> None:
        if call.argument:
            raise invalid()
        call.file.revoke()

    @evdev_ioctl(0xA0, "EVIOCSCLOCKID", "i32 clock", direction=WRITE)
    def set_clock(self, call: EvdevCall) -> None:
        if call.args.clock not in e.CLOCKS:
            raise invalid(f"clock {call.args.clock}")
        call.file.clock = call.args.clock

    @evdev_ioctl(0x92, "EVIOCGMASK", "u32 type, u32 codes_size, u64 codes_ptr")
    def mask(self, call: EvdevCall) -> None:
        kind, room, place = self._mask_of(call)
        count = e.CODES.get(kind, 0)
        words = -(-count // 64) * 8
        found = call.file.masks.get(kind, b"\xff" * words)[:room]
        call.task.write(place, found.ljust(room, b"\0"))

    @evdev_ioctl(
        0x93, "EVIOCSMASK", "u32 type, u32 codes_size, u64 codes_ptr", direction=WRITE
    )  # fmt: skip
    def set_mask(self, call: EvdevCall) -> None:
        kind, room, place = self._mask_of(call)
        count = e.CODES.get(kind, 0)
        if count:
            words = -(-count // 64) * 8
            data = call.task.read(place, min(room, words)) if room else b""
            call.file.masks[kind] = data.ljust(words, b"\0")

    def _mask_of(self, call: EvdevCall) -> tuple[int, int, int]:
        kind, room, place = struct.unpack("<IIQ", call.task.read(call.argument, 16))
        call.args = None  # nothing is written back
        if room > _MAX_MASK:
            raise invalid(f"a mask of {room} bytes")
        return kind, room, place


def _repeating(call: EvdevCall) -> EvdevDevice:
    device = call.file.device
    if e.EV_REP not in device.codes:
        raise Refused(errno.ENOSYS, "the device does not repeat keys")
    return device
