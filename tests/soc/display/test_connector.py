"""The HDMI connector: monitors with several modes, and none, as a program finds them."""

import struct
from dataclasses import replace

import pytest
from tests.soc.devices.buses.test_i2c import ADDRESS, CONTROL, DLEN, DONE, ERROR, ON, START, STATUS, Bus
from tests.soc.devices.buses.test_i2c import read_edid as read
from tests.soc.videocore.test_properties import call

from vc4lab.scanout.timings import NEGATIVE_H, NEGATIVE_V, POSITIVE_H, POSITIVE_V, STANDARD, Timing, timing_of
from vc4lab.soc.board import BOARDS
from vc4lab.soc.states.state import load_state, save_state
from vc4lab.soc.videocore.edid import MODE_NUMBERS, MOST_MODES, edid_of

HALT = bytes.fromhex("feffffea")
HDMI_HOTPLUG, GPIO_LEVELS = 0x90200C, 0x200034
NAME, LIMITS = b"\0\0\0\xfc\0vc4lab\n      ", b"\0\0\0\xfd\0"


def timing(block):
    """A detailed timing, field by field as VESA's table 3.21 has them."""
    clock = int.from_bytes(block[:2], "little") * 10
    width, height = (block[at] | block[at + 2] >> 4 << 8 for at in (2, 5))
    across, down = (block[at] | (block[at + 1] & 15) << 8 for at in (3, 6))
    before, sync = block[8] | block[11] >> 6 << 8, block[9] | (block[11] >> 4 & 3) << 8
    above, pulse = block[10] >> 4 | (block[11] >> 2 & 3) << 4, block[10] & 15
    pulse |= (block[11] & 3) << 4
    flags = (POSITIVE_H if block[17] & 2 else NEGATIVE_H) | (POSITIVE_V if block[17] & 4 else NEGATIVE_V)
    assert block[17] & 0x98 == 0x18, "not interlaced, digital sync of its own"
    return Timing(
        *(width, height, round(1000 * clock / (width + across) / (height + down)), clock),
        (width + before, width + before + sync, width + across),
        (height + above, height + above + pulse, height + down),
        flags,
    )


def rounded(mode):
    """A mode's timing with the clock as an EDID has it."""
    found = timing_of(*mode)
    return replace(found, clock=found.clock // 10 * 10)


def data_blocks(block):
    """Of a CEA extension: what is after the tag, by tag; two tags for vendors and extended ones."""
    found, at = {}, 4
    while at < block[2]:
        tag, size = block[at] >> 5, block[at] & 31
        found[tag] = block[at + 1 : at + 1 + size]
        at += 1 + size
    assert at == block[2]
    return found


PLAIN = [(704 + 64 * n, 480 + 16 * n, 50 + n) for n in range(MOST_MODES)]
"""Modes that no standard lists."""


@pytest.mark.parametrize(
    "modes",
    [
        *(PLAIN[:count] for count in range(1, MOST_MODES + 1)),
        [(1920, 1080, 60), (1280, 720, 50), *PLAIN[2:]],
        list(STANDARD)[:MOST_MODES],
        list(STANDARD)[-MOST_MODES:],
    ],
)
def test_an_edid_of_several_modes(modes):
    first, second = (edid_of(modes)[at : at + 128] for at in (0, 128))
    assert sum(first) & 0xFF == sum(second) & 0xFF == 0
    assert first[126] == 1
    assert first[35] == 0x20, "640x480 at 60 Hz"
    descriptors = [first[at : at + 18] for at in range(54, 126, 18)]
    timings = [timing(block) for block in descriptors if any(block[:2])]
    assert timings == [rounded(mode) for mode in modes[:2]]
    assert NAME in descriptors
    (limits,) = (block for block in descriptors if block.startswith(LIMITS))
    rates = [60, *(rate for *_size, rate in modes)]
    assert list(limits[5:7]) == [min(rates), max(rates)]
    assert second[:2] == b"\x02\x03"
    assert second[3] == 0xC1, "computers' pictures are shown whole, sound, one native timing"
    blocks = data_blocks(second)
    assert blocks[3][:3] == b"\x03\x0c\x00", "HDMI"
    assert blocks[1][0] >> 3 == 1, "PCM"
    further = range(second[2], 127 - 17, 18)
    timings = [timing(second[at : at + 18]) for at in further if any(second[at : at + 2])]
    numbers = list(blocks.get(2, b""))
    by_number = {number: mode for mode, number in MODE_NUMBERS.items()}
    listed = [by_number[number] for number in numbers] + [one.mode for one in timings]
    assert sorted({modes[0], *listed}) == sorted({modes[0], *modes[2:]})
    assert all(one == rounded(one.mode) for one in timings)


def test_timings_of_standards_add_up():
    """The clock gives the rate (VESA has 60.317 Hz for 800x600), the parts are in order."""
    for mode in (*STANDARD, *PLAIN):
        timing = timing_of(*mode)
        (begin, end, across), (top, bottom, down) = timing.horizontal, timing.vertical
        assert timing.width < begin < end < across
        assert timing.height < top < bottom < down
        assert 1000 * timing.clock / across / down == pytest.approx(mode[2], rel=6e-3)


@pytest.mark.parametrize("count", [0, MOST_MODES + 1])
def test_an_edid_has_room_for_some_modes_only(count):
    with pytest.raises(ValueError, match=f"1 to {MOST_MODES} modes, not {count}"):
        edid_of([(640, 480, 60)] * count)


@pytest.mark.parametrize("name", BOARDS)
def test_a_plug_is_pulled_and_another_monitor_comes(boot, tmp_path, name):
    (tmp_path / "kernel.img").write_bytes(HALT)
    machine = boot(HALT, board=name)
    bus, connector, pin = Bus(machine), machine.hardware.connector, BOARDS[name].hotplug_gpio

    def connected():
        level = machine.videocore.expander[4]
        if pin is not None:
            level = bus[GPIO_LEVELS + 4 * (pin // 32)] >> pin % 32 & 1
        assert bus[HDMI_HOTPLUG] & 1 == 1 - level
        return not level

    assert connected()
    connector.unplug()
    assert not connected()
    bus[ADDRESS], bus[DLEN] = 0x50, 1
    bus[CONTROL] = ON | START
    assert bus[STATUS] & (ERROR | DONE) == ERROR | DONE
    assert not machine.reporter.items
    bus[STATUS] = ERROR | DONE
    modes = [(1280, 720, 60), (800, 600, 75), (640, 480, 60)]
    connector.plug(modes)
    assert connected()
    assert read(bus, 256) == edid_of(modes)
    blocks = call(machine, (0x30020, [0]), (0x30020, [1]), size=136)
    assert struct.pack("<64I", *blocks[0][2:], *blocks[1][2:]) == edid_of(modes)
    connector.unplug()
    assert call(machine, (0x30020, [0]), size=136)[0][:2] == [0, 1]


def test_a_saved_state_knows_what_is_plugged_in(boot, tmp_path):
    first, second = boot(HALT), boot(HALT)
    first.hardware.connector.plug([(800, 600, 60), (640, 480, 60), (1280, 720, 50)])
    first.hardware.connector.unplug()
    save_state(first, str(tmp_path / "state"))
    load_state(second, str(tmp_path / "state"))
    assert second.hardware.monitor.edid == first.hardware.monitor.edid
    assert not second.hardware.monitor.connected
