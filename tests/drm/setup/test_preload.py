"""The generated AArch64 object: read back as the loader reads it, and its code executed."""

import struct
from dataclasses import dataclass

import pytest
from unicorn import UC_ARCH_ARM64, UC_HOOK_INTR, UC_MODE_ARM, Uc
from unicorn import arm64_const as arm

from vc4lab.drm.processes.filters import IOCTL_MARK
from vc4lab.drm.setup.preload import NAME, preload_object

STACK, RETURN, ERRNO_FUNCTION, ERRNO = 0x100000, 0x200000, 0x201000, 0x202000
SECOND_LOAD = 0x10000


@dataclass
class Object:
    data: bytes

    def programs(self) -> list[tuple[int, ...]]:
        place, size, count = (
            struct.unpack_from("<Q", self.data, 32)[0],
            *struct.unpack_from("<HH", self.data, 54),
        )
        return [struct.unpack_from("<IIQQQQQQ", self.data, place + size * n) for n in range(count)]

    def dynamic(self) -> dict[int, list[int]]:
        _, _, offset, _, _, size, _, _ = next(p for p in self.programs() if p[0] == 2)
        found: dict[int, list[int]] = {}
        for tag, value in struct.iter_unpack("<QQ", self.data[offset : offset + size]):
            found.setdefault(tag, []).append(value)
        return found

    def text(self, offset: int) -> str:
        start = self.dynamic()[5][0] + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def symbols(self) -> dict[str, tuple[int, int, int]]:
        """Name → (section, value, size)."""
        table = self.dynamic()
        count = struct.unpack_from("<II", self.data, table[4][0])[1]
        found = {}
        for number in range(1, count):
            name, _, _, section, value, size = struct.unpack_from(
                "<IBBHQQ", self.data, table[6][0] + 24 * number
            )
            found[self.text(name)] = section, value, size
        return found


@pytest.fixture(scope="module")
def made() -> Object:
    return Object(preload_object())


def test_it_is_a_small_shared_object_of_aarch64(made: Object) -> None:
    assert len(made.data) < 1024
    assert made.data[:6] == b"\x7fELF\2\1"
    assert struct.unpack_from("<HH", made.data, 16) == (3, 183)
    loads = [p for p in made.programs() if p[0] == 1]
    assert [p[1] for p in loads] == [5, 6], "one for code, one for data; none is both"
    for _, _, offset, address, _, in_file, in_memory, align in loads:
        assert offset % align == address % align
        assert offset + in_file <= len(made.data)
        assert in_file == in_memory
    stack = next(p for p in made.programs() if p[0] == 0x6474E551)
    assert stack[1] == 6, "the stack is not executable"


def test_names_and_tables(made: Object) -> None:
    table = made.dynamic()
    assert [made.text(name) for name in table[1]] == ["libc.so.6"]
    assert [made.text(name) for name in table[14]] == [NAME]
    symbols = made.symbols()
    assert set(symbols) == {"ioctl", "__errno_location"}
    assert symbols["__errno_location"][0] == 0, "the C library's"
    assert symbols["ioctl"][0] != 0
    place, info, addend = struct.unpack_from("<QQq", made.data, table[7][0])
    assert (info & 0xFFFFFFFF, info >> 32, addend) == (1025, 2, 0)
    data = made.programs()[1]
    assert data[3] <= place <= data[3] + data[6] - 8
    buckets, chains, first, *chain = struct.unpack_from("<6I", made.data, table[4][0])
    assert (buckets, chains) == (1, 3)
    seen = []
    while first:
        seen.append(first)
        first = chain[first]
    assert sorted(seen) == [1, 2]


class Machine:
    """The object's code on an AArch64 processor; a system call answers `result`."""

    def __init__(self, made: Object, result: int) -> None:
        self.calls: list[tuple[int, ...]] = []
        uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        for place in (0, SECOND_LOAD, STACK, RETURN, ERRNO_FUNCTION, ERRNO):
            uc.mem_map(place, 0x1000)
        for _, _, offset, address, _, size, _, _ in [p for p in made.programs() if p[0] == 1]:
            uc.mem_write(address, made.data[offset : offset + size])
        relocation = struct.unpack_from("<Q", made.data, made.dynamic()[7][0])[0]
        uc.mem_write(relocation, struct.pack("<Q", ERRNO_FUNCTION))
        uc.mem_write(  # mov x0, #ERRNO; clobber what a callee may; ret
            ERRNO_FUNCTION, struct.pack("<4I", 0xD2A00400, 0xF2840000, 0xD280000F, 0xD65F03C0)
        )
        uc.hook_add(UC_HOOK_INTR, self._call)
        self.uc, self.made, self.result = uc, made, result

    def _call(self, uc: Uc, *_: object) -> None:
        registers = [arm.UC_ARM64_REG_X8, *range(arm.UC_ARM64_REG_X0, arm.UC_ARM64_REG_X0 + 4)]
        self.calls.append(tuple(uc.reg_read(register) for register in registers))
        uc.reg_write(arm.UC_ARM64_REG_X0, self.result & 0xFFFFFFFFFFFFFFFF)

    def ioctl(self, fd: int, request: int, argument: int) -> int:
        uc = self.uc
        for register, value in (
            (arm.UC_ARM64_REG_X0, fd), (arm.UC_ARM64_REG_X1, request),
            (arm.UC_ARM64_REG_X2, argument), (arm.UC_ARM64_REG_X19, 0x1919),
            (arm.UC_ARM64_REG_X30, RETURN), (arm.UC_ARM64_REG_SP, STACK + 0x800),
        ):  # fmt: skip
            uc.reg_write(register, value)
        uc.emu_start(self.made.symbols()["ioctl"][1], RETURN, count=200)
        assert uc.reg_read(arm.UC_ARM64_REG_PC) == RETURN
        assert uc.reg_read(arm.UC_ARM64_REG_SP) == STACK + 0x800
        assert uc.reg_read(arm.UC_ARM64_REG_X19) == 0x1919, "a register of the caller's"
        value: int = uc.reg_read(arm.UC_ARM64_REG_X0)
        return value - (1 << 64) if value >> 63 else value

    @property
    def errno(self) -> int:
        value: int = struct.unpack("<i", self.uc.mem_read(ERRNO, 4))[0]
        return value


@pytest.mark.parametrize("request_", [0xC0B06440, 0x40086200, 0xC0303E03, 0x641E, 0x80044501])
def test_requests_of_the_device_become_writes(made: Object, request_: int) -> None:
    machine = Machine(made, 0)
    assert machine.ioctl(907, request_, 0x7F0000001000) == 0
    offset = IOCTL_MARK << 32 | request_
    assert machine.calls == [(68, 907, 0x7F0000001000, request_ >> 16 & 0x3FFF, offset)]
    assert offset < 1 << 63, "an offset is signed"


def test_a_number_in_place_of_an_address_has_no_size(made: Object) -> None:
    machine = Machine(made, 0)
    for argument in (0, 1, 4095):
        machine.ioctl(801, 0x40044590, argument)
        assert machine.calls.pop() == (68, 801, argument, 0, IOCTL_MARK << 32 | 0x40044590)


def test_a_request_with_its_sign_spread_is_the_same(made: Object) -> None:
    machine = Machine(made, 0)
    machine.ioctl(907, 0xFFFFFFFF_C0B06440, 16)
    assert machine.calls[0][4] == IOCTL_MARK << 32 | 0xC0B06440


@pytest.mark.parametrize("request_", [0x5401, 0x80045430, 0xC0DEFE00])
def test_other_requests_stay_ioctls(made: Object, request_: int) -> None:
    machine = Machine(made, 7)
    assert machine.ioctl(3, request_, 0x1234) == 7
    assert machine.calls[0][:4] == (29, 3, request_, 0x1234)


def test_errors_go_to_errno(made: Object) -> None:
    for result, expected, errno in ((-22, -1, 22), (-4095, -1, 4095), (-4096, -4096, 0), (5, 5, 0)):
        machine = Machine(made, result)
        assert machine.ioctl(900, 0xC0106447, 64) == expected
        assert machine.errno == errno
