"""The filter, instruction by instruction: what comes to the supervisor and what does not."""

import struct
from dataclasses import fields
from unittest.mock import Mock

import pytest

from vc4lab.drm.processes.filters import ALLOW, ALWAYS, BY_DESCRIPTOR, IOCTL_MARK, NOTIFY, build_filter
from vc4lab.drm.processes.machines import ARM64, X86_64, Machine
from vc4lab.drm.supervisor.calls import SystemCalls

MACHINES = pytest.mark.parametrize("machine", [X86_64, ARM64], ids=lambda m: m.name)


def decide(code: bytes, audit: int, number: int, *args: int) -> bool:
    """Whether a system call is notified: classic BPF over struct seccomp_data."""
    data = struct.pack("<IIQ6Q", number, audit, 0, *args, *[0] * (6 - len(args)))
    program = list(struct.iter_unpack("<HBBI", code))
    place, value = 0, 0
    for _ in range(1000):
        kind, yes, no, constant = program[place]
        place += 1
        if kind == 0x20:
            value = struct.unpack_from("<I", data, constant)[0]
        elif kind == 0x54:
            value &= constant
        elif kind == 0x06:
            assert constant in (NOTIFY, ALLOW)
            return bool(constant == NOTIFY)
        else:
            test = {
                0x15: value == constant,
                0x25: value > constant,
                0x35: value >= constant,
                0x45: value & constant,
            }[kind]
            place += yes if test else no
    raise AssertionError("the program does not end")


def notified(machine: Machine, name: str, *args: int, deep: bool = False, inputs: bool = False) -> bool:
    code = build_filter(machine, deep=deep, inputs=inputs)
    return decide(code, machine.audit, machine.calls[name], *args)


@MACHINES
def test_each_call_of_the_table_has_a_handler(machine: Machine) -> None:
    handlers = SystemCalls(*[Mock() for _ in fields(SystemCalls)]).table(machine.calls)
    assert set(handlers) == set(machine.calls.values())
    assert {*ALWAYS, *BY_DESCRIPTOR} <= set(X86_64.calls)


@MACHINES
def test_paths_are_always_seen(machine: Machine) -> None:
    for name in ALWAYS:
        if name in machine.calls:
            assert notified(machine, name, 0, 0, 0)


@MACHINES
def test_calls_on_descriptors_are_seen_in_the_window_only(machine: Machine) -> None:
    for name, place in BY_DESCRIPTOR.items():
        if name not in machine.calls:
            continue
        for number, seen in ((3, False), (899, False), (900, True), (999, True), (1000, False)):
            args = [0] * 6
            args[place] = number
            assert notified(machine, name, *args) == seen, (name, number)


@MACHINES
def test_ioctls_are_seen_by_their_type(machine: Machine) -> None:
    for request, seen in ((0xC0106440, True), (0x40086200, True), (0xC0303E03, True)):
        assert notified(machine, "ioctl", 3, request) == seen
    for request in (0x5401, 0x5413, 0xC0106540):
        assert not notified(machine, "ioctl", 950, request)


@MACHINES
def test_shared_mappings_are_seen_and_private_ones_of_ours(machine: Machine) -> None:
    shared, private, anonymous = 0x01, 0x02, 0x22
    nothing = 0xFFFFFFFF
    assert notified(machine, "mmap", 0, 4096, 3, shared, 5)
    assert not notified(machine, "mmap", 0, 4096, 3, shared | 0x20, nothing)
    assert not notified(machine, "mmap", 0, 4096, 3, private, 5)
    assert notified(machine, "mmap", 0, 4096, 3, private, 905)
    assert not notified(machine, "mmap", 0, 4096, 3, anonymous, nothing)


@MACHINES
def test_polls_of_something_are_seen(machine: Machine) -> None:
    assert notified(machine, "ppoll", 0x1000, 1)
    assert not notified(machine, "ppoll", 0, 0)
    assert notified(machine, "pselect6", 901)
    assert not notified(machine, "pselect6", 900)


@MACHINES
def test_status_of_a_descriptor_costs_nothing_outside_of_the_window(machine: Machine) -> None:
    empty_path = 0x1000
    assert notified(machine, "newfstatat", 3, 0, 0, 0)
    assert not notified(machine, "newfstatat", 3, 0, 0, empty_path)
    assert notified(machine, "newfstatat", 930, 0, 0, empty_path)
    assert notified(machine, "newfstatat", 3, 0, 0, empty_path, deep=True)


@MACHINES
def test_deep_mode_sees_descriptors_everywhere(machine: Machine) -> None:
    assert notified(machine, "read", 5, 0, 1024, deep=True)
    assert not notified(machine, "read", 5, 0, 1025, deep=True)
    assert notified(machine, "read", 905, 0, 24, deep=True)
    assert notified(machine, "fstat", 5, deep=True)
    assert notified(machine, "epoll_ctl", 4, 1, 5, deep=True)


@MACHINES
def test_other_architectures_and_other_calls_pass(machine: Machine) -> None:
    code = build_filter(machine)
    assert not decide(code, 0x40000003, machine.calls["openat"])  # i386
    assert not decide(code, machine.audit, machine.calls["openat"] | 0x40000000)  # x32
    for number in (500, 1000, 0x7FFFFFFF):
        assert not decide(code, machine.audit, number)


@MACHINES
def test_jumps_fit_in_a_byte_and_the_program_in_the_kernel(machine: Machine) -> None:
    for deep in (False, True):
        code = build_filter(machine, deep=deep)
        assert len(code) % 8 == 0
        assert len(code) // 8 < 256


@MACHINES
def test_of_input_devices_only_ioctl_and_fstat_are_seen(machine: Machine) -> None:
    for inputs in (False, True):
        assert notified(machine, "ioctl", 800, 0x80044501, inputs=inputs) == inputs
        for number, seen in ((799, False), (800, inputs), (899, inputs), (900, True)):
            if "fstat" in machine.calls:
                assert notified(machine, "fstat", number, inputs=inputs) == seen
            args = (number, 0, 0, 0x1000)
            assert notified(machine, "newfstatat", *args, inputs=inputs) == seen
        assert not notified(machine, "fstat", 1000, inputs=inputs)
        assert not notified(machine, "read", 800, 0, 24, inputs=inputs)
        assert not notified(machine, "close", 800, inputs=inputs)
        assert not notified(machine, "epoll_ctl", 3, 1, 800, inputs=inputs)
        assert not notified(machine, "ioctl", 3, 0x5401, inputs=inputs)


@MACHINES
def test_writes_that_stand_for_ioctls_are_seen_on_every_descriptor(machine: Machine) -> None:
    for number in (3, 907, 5000):
        assert notified(machine, "pwrite64", number, 0x1000, 16, IOCTL_MARK << 32 | 0xC0106447)
    for offset in (0, 0xC0106447, (IOCTL_MARK + 1) << 32, IOCTL_MARK):
        assert not notified(machine, "pwrite64", 3, 0x1000, 16, offset)
        assert notified(machine, "pwrite64", 907, 0x1000, 16, offset)


@MACHINES
def test_sockets_for_device_events_are_seen_and_no_others(machine: Machine) -> None:
    assert notified(machine, "socket", 16, 3, 15)
    for family, protocol in ((16, 0), (1, 0), (2, 15)):
        assert not notified(machine, "socket", family, 3, protocol)
