"""The HDMI connector: monitors with several modes, and none, as a program finds them."""

from __future__ import annotations

import pytest
from tests.soc.devices.test_i2c import ADDRESS, CONTROL, DLEN, DONE, ERROR, ON, START, STATUS, Bus
from tests.soc.devices.test_i2c import read_edid as read

from vc4lab.soc.board import BOARDS
from vc4lab.soc.states.state import load_state, save_state
from vc4lab.soc.videocore.edid import MOST_MODES, edid_of

HALT = bytes.fromhex("feffffea")
HDMI_HOTPLUG, GPIO_LEVELS = 0x90200C, 0x200034
NAME, LIMITS = b"\0\0\0\xfc\0vc4lab\n      ", b"\0\0\0\xfd\0"


def timing(block):
    """Width, height, pictures a second of a detailed timing."""
    low, high = (block[at] | block[at + 2] >> 4 << 8 for at in (2, 5))
    blanks = [block[at + 1] | (block[at + 2] & 15) << 8 for at in (2, 5)]
    clock = int.from_bytes(block[:2], "little") * 10_000
    return low, high, round(clock / (low + blanks[0]) / (high + blanks[1]))


@pytest.mark.parametrize("count", range(1, MOST_MODES + 1))
def test_an_edid_of_several_modes(count):
    modes = [(640 + 64 * n, 480 + 16 * n, 50 + n) for n in range(count)]
    edid = edid_of(modes)
    assert len(edid) == (256 if count > 2 else 128)
    assert [sum(edid[at : at + 128]) & 0xFF for at in range(0, len(edid), 128)].count(0) == (
        len(edid) // 128
    )
    assert edid[126] == len(edid) // 128 - 1
    descriptors = [edid[at : at + 18] for at in (*range(54, 126, 18), *range(132, len(edid), 18))]
    found = [timing(block) for block in descriptors if len(block) == 18 and any(block[:2])]
    assert found == modes
    assert NAME in descriptors
    (limits,) = (block for block in descriptors if block.startswith(LIMITS))
    assert list(limits[5:7]) == [50, 50 + count - 1]


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


def test_a_saved_state_knows_what_is_plugged_in(boot, tmp_path):
    first, second = boot(HALT), boot(HALT)
    first.hardware.connector.plug([(800, 600, 60), (640, 480, 60), (1280, 720, 50)])
    first.hardware.connector.unplug()
    save_state(first, tmp_path / "state")
    load_state(second, tmp_path / "state")
    assert second.hardware.monitor.edid == first.hardware.monitor.edid
    assert not second.hardware.monitor.connected
