"""RAM at power-on: noise that is the same each time, where the firmware has left RAM alone."""

import struct

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.memory.guest import PERIOD, part, pattern
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.options import MachineOptions
from vc4lab.soc.states.state import load_state, save_state

COUNTS = (0xE59F1008, 0xE5910000, 0xE2800001, 0xEAFFFFFE, 0x00008100)
"""Adds one to a variable that nothing has set; it is in r0."""
VARIABLE = 0x8100


@pytest.fixture
def machine(boot):
    return lambda **options: boot(struct.pack("<5I", *COUNTS), **options)


def counted(machine: Machine) -> int:
    assert machine.run(seconds=0.01).reason is Stop.HALTED
    return machine.cpu.register(0)


def test_a_variable_that_nothing_has_set(machine):
    (found,) = struct.unpack("<I", part(VARIABLE, 4))
    for options in ({"ram": "noise"}, {"reporter": Reporter(strict=True)}):
        assert counted(machine(**options)) == found + 1 & 0xFFFFFFFF
    for options in (
        {"ram": "zero"},
        {"ram": "zero", "reporter": Reporter(strict=True)},
        {"forgiving": True, "reporter": Reporter(strict=True)},
        {},
    ):
        assert counted(machine(**options)) == 1


def test_what_the_firmware_has_written_is_no_noise(machine):
    """Its own area, the image, the tagged list, the VideoCore's memory."""
    memory = machine(ram="noise").memory
    assert not any(memory.read(0x200, 0x7E00))
    assert memory.u32(0x104) == 0x54410001
    assert memory.read(0x8000, 20) == struct.pack("<5I", *COUNTS)
    assert memory.read(0x8014, 4096) == part(0x8014, 4096)
    assert memory.read(0x3BFFF000, 0x1000) == part(0x3BFFF000, 0x1000)
    assert not any(memory.read(0x3C000000, 0x10000))


def test_an_image_at_address_0_has_noise_after_it(boot):
    memory = boot(struct.pack("<5I", *COUNTS), "kernel_old=1", ram="noise").memory
    assert memory.read(0x4000, 64) == part(0x4000, 64)


def test_noise_takes_no_memory_and_repeats():
    memory = GuestMemory(1 << 30)
    memory.fill_with_noise(0x8000, 1 << 29)
    assert memory.read(0x8000, 16) == pattern()[0x8000:0x8010]
    assert memory.read(5 * PERIOD - 8, 16) == pattern()[-8:] + pattern()[:8]
    assert memory.read(0x7FF0, 0x20) == bytes(16) + pattern()[0x8000:0x8010]
    assert memory.is_untouched(0, 1 << 20)
    memory.set_u8(0x9000, memory.u8(0x9000) ^ 1)
    assert not memory.is_untouched(0x8000, 0x2000)
    assert memory.u8(0x9000 + PERIOD) == pattern()[0x9000]
    other = GuestMemory(1 << 30)
    other.fill_with_noise(0x8000, 1 << 29)
    assert other.u8(0x9000) == pattern()[0x9000]
    memory.clear()
    assert not any(memory.read(0x8000, 64))
    for wrong in ((1, 4096), (4096, 4096), (-4096, 0), (0, 2 << 30)):
        with pytest.raises(ValueError, match="noise"):
            memory.fill_with_noise(*wrong)


def test_noise_has_all_kinds_of_words():
    words = struct.unpack(f"<{PERIOD // 4}I", pattern())
    assert len(set(words)) > 0.99 * len(words)


def test_a_saved_state_goes_on_in_the_same_noise(machine, tmp_path):
    first = machine(ram="noise")
    first.run(seconds=0.001)
    first.memory.set_u32(0x200000, 5)
    save_state(first, tmp_path / "state")
    assert (tmp_path / "state").stat().st_size < 200_000
    second = machine()
    load_state(second, tmp_path / "state")
    for address, size in ((0x1FFFF0, 64), (0x8000, 0x2000), (0x30000000, 4096), (0, 0x200)):
        assert second.memory.read(address, size) == first.memory.read(address, size)


def test_jumping_into_noise_is_named(boot):
    """Its bytes are instructions of some kind; without a handler they end the program."""
    words = (0xE3A01601, 0xE12FFF11)  # mov r1, #0x100000; bx r1
    machine = boot(struct.pack("<2I", *words), ram="noise")
    assert machine.run(seconds=0.1).reason in (Stop.CRASH, Stop.HANG)


def test_other_contents_are_refused():
    with pytest.raises(ValueError, match="ram"):
        MachineOptions(ram="ones")
