"""Writes a small AArch64 shared object through which arm64 programs reach the device under qemu.

qemu-user answers an ioctl that it does not know without asking the host, so the supervisor would
never see one. The object defines `ioctl`: requests of the device's types become
``pwrite64(fd, argument, size, MARK << 32 | request)``, which qemu hands on with the address as it
is; the supervisor takes it for the ioctl. All other requests stay ioctls.

Sources: System V ABI (ELF-64), ELF for the Arm 64-bit Architecture, Arm Architecture Reference
Manual for A-profile (instruction encodings).
"""

from __future__ import annotations

import struct

from vc4lab.drm.processes.filters import IOCTL_MARK, IOCTL_TYPES
from vc4lab.drm.uapi.numbers import EVDEV_TYPE

NAME = "vc4lab-ioctl.so"
PAGE = 0x10000
"""The largest page of AArch64 systems. The writable part begins so many bytes after the code."""
_PWRITE64, _IOCTL = 68, 29
AARCH64 = 183
"""e_machine of an ELF file."""
_SHARED_OBJECT = 3
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_EXECUTE, _WRITE, _READ = 1, 2, 4
_GLOB_DAT = 1025
_FUNCTION = 0x12
"""Global, a function."""
_ALWAYS, _EQUAL, _CARRY = -1, 0, 2


class _Code:
    """Instructions with labels."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.labels: dict[str, int] = {}
        self._jumps: list[tuple[int, int, str]] = []

    def add(self, *words: int) -> None:
        self.words += words

    def label(self, name: str) -> None:
        self.labels[name] = len(self.words)

    def jump(self, condition: int, target: str) -> None:
        self._jumps.append((len(self.words), condition, target))
        self.words.append(0)

    def to_bytes(self) -> bytes:
        for place, condition, target in self._jumps:
            distance = self.labels[target] - place
            if condition == _ALWAYS:
                self.words[place] = 0x14000000 | distance & 0x3FFFFFF  # b
            else:
                self.words[place] = 0x54000000 | (distance & 0x7FFFF) << 5 | condition  # b.cond
        return struct.pack(f"<{len(self.words)}I", *self.words)


def _call_number(number: int) -> int:
    return 0xD2800008 | number << 5  # mov x8, #number


def _ioctl(errno_place: int) -> bytes:
    """The function; `errno_place`: offset of the word with __errno_location on the page of data."""
    code = _Code()
    supervisor_call = 0xD4000001  # svc #0
    code.add(0x53083C23)  # ubfx w3, w1, #8, #8: the request's type
    for kind in (*IOCTL_TYPES, EVDEV_TYPE):
        code.add(0x7100007F | kind << 10)  # cmp w3, #kind
        code.jump(_EQUAL, "ours")
    code.add(_call_number(_IOCTL), supervisor_call)
    code.jump(_ALWAYS, "done")
    code.label("ours")
    code.add(
        0x53107424,  # ubfx w4, w1, #16, #14: the argument's size
        0xD34CFC45,  # lsr x5, x2, #12
        0xF10000BF,  # cmp x5, #0: a number in place of an address (EVIOCGRAB) has no size
        0x1A8403E4,  # csel w4, wzr, w4, eq
        0x2A0103E3,  # mov w3, w1
        0xF2C00003 | (IOCTL_MARK & 0xFFFF) << 5,  # movk x3, #…, lsl #32
        0xF2E00003 | (IOCTL_MARK >> 16) << 5,  # movk x3, #…, lsl #48
        0xAA0203E1,  # mov x1, x2
        0xAA0403E2,  # mov x2, x4
        _call_number(_PWRITE64),
        supervisor_call,
    )
    code.label("done")
    code.add(0xB13FFC1F)  # cmn x0, #4095: carry for -4095 to -1
    code.jump(_CARRY, "failed")
    code.add(0xD65F03C0)  # ret
    code.label("failed")
    code.add(
        0xA9BE7BFD,  # stp x29, x30, [sp, #-32]!
        0xF9000BF3,  # str x19, [sp, #16]
        0xCB0003F3,  # neg x19, x0
        0x90000001 | PAGE >> 14 << 5,  # adrp x1, one PAGE on
        0xF9400021 | errno_place // 8 << 10,  # ldr x1, [x1, #errno_place]
        0xD63F0020,  # blr x1
        0xB9000013,  # str w19, [x0]
        0x92800000,  # mov x0, #-1
        0xF9400BF3,  # ldr x19, [sp, #16]
        0xA8C27BFD,  # ldp x29, x30, [sp], #32
        0xD65F03C0,  # ret
    )
    return code.to_bytes()


def preload_object() -> bytes:
    """The shared object's bytes."""
    headers = 64 + 4 * 56
    names = b"\0".join([b"", b"ioctl", b"__errno_location", b"libc.so.6", NAME.encode(), b""])

    def name_at(name: bytes) -> int:
        return names.index(b"\0" + name + b"\0") + 1

    symbols_at = headers
    hash_at = symbols_at + 3 * 24
    relocations_at = hash_at + 6 * 4
    code_at = relocations_at + 24
    size = len(_ioctl(0))
    names_at = code_at + size
    data_at = -(-(names_at + len(names)) // 8) * 8
    entries = [
        (1, name_at(b"libc.so.6")),  # NEEDED
        (14, name_at(NAME.encode())),  # SONAME
        (4, hash_at),  # HASH
        (5, names_at),  # STRTAB
        (6, symbols_at),  # SYMTAB
        (10, len(names)),  # STRSZ
        (11, 24),  # SYMENT
        (7, relocations_at),  # RELA
        (8, 24),  # RELASZ
        (9, 24),  # RELAENT
        (0, 0),
    ]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    errno_at = data_at + len(dynamic)
    end = errno_at + 8
    code = _ioctl(errno_at)

    def program(kind: int, flags: int, offset: int, address: int, size: int, align: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, flags, offset, address, address, size, size, align)

    writable = data_at + PAGE, end - data_at
    out = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1", _SHARED_OBJECT, AARCH64, 1, 0, 64, 0, 0, 64, 56, 4, 0, 0, 0,
    )  # fmt: skip
    out += program(_LOAD, _READ | _EXECUTE, 0, 0, data_at, PAGE)
    out += program(_LOAD, _READ | _WRITE, data_at, *writable, PAGE)
    out += program(_DYNAMIC, _READ | _WRITE, data_at, data_at + PAGE, len(dynamic), 8)
    out += program(_STACK, _READ | _WRITE, 0, 0, 0, 16)  # else the stack becomes executable
    out += bytes(24)
    out += struct.pack("<IBBHQQ", name_at(b"ioctl"), _FUNCTION, 0, 1, code_at, size)
    out += struct.pack("<IBBHQQ", name_at(b"__errno_location"), _FUNCTION, 0, 0, 0, 0)
    out += struct.pack("<6I", 1, 3, 1, 0, 2, 0)  # one bucket: symbol 1, then 2
    out += struct.pack("<QQq", errno_at + PAGE, 2 << 32 | _GLOB_DAT, 0)
    out += code + names
    return out.ljust(data_at, b"\0") + dynamic + bytes(8)
