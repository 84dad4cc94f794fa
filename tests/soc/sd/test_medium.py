"""What the card is made of: the image, the writes above it, saved states, a program on it."""

import resource
import signal

import pytest
from tests.soc.sd.host import BAD_DATA, BUSY, NO_DATA, READ, SHORT, WRITE, Host, codes, pattern

from vc4lab.soc.machine import Stop
from vc4lab.soc.media.sd_medium import SECTOR, ImageFile, Overlay
from vc4lab.soc.states.state import StateError, load_state, save_state


def test_overlay_ranges(image):
    card = Overlay(ImageFile(image))
    for first, end in ((10, 12), (20, 22), (12, 15), (30, 40), (14, 21)):
        card.erase(first, end)
    assert card.erased == [(10, 22), (30, 40)]
    assert card.read(22) == pattern(22)
    assert card.read(21) == bytes(SECTOR)
    card.write(35, pattern(1))
    assert card.read(35) == pattern(1)


def test_saving_into_the_image(host, image):
    before = image.read_bytes()
    host.write_block(5, pattern(99))
    host.write_block(3050, pattern(98))
    host.command(32, 2990)
    host.command(33, 3020)
    host.command(38, 0, BUSY)
    assert image.read_bytes() == before
    assert host.machine.card_slot.save() == 12
    after = image.read_bytes()
    assert after[: 5 * SECTOR] == before[: 5 * SECTOR]
    assert after[5 * SECTOR : 6 * SECTOR] == pattern(99)
    assert after[6 * SECTOR : 2990 * SECTOR] == before[6 * SECTOR : 2990 * SECTOR]
    assert after[2990 * SECTOR : 3050 * SECTOR] == bytes(60 * SECTOR)
    assert after[3050 * SECTOR :] == pattern(98)


def test_a_disk_without_room_changes_nothing(image):
    """Two sectors: one inside of the image, one where it would have to become longer."""
    before = image.read_bytes()
    card = Overlay(ImageFile(image))
    card.write(5, pattern(99))
    card.write(len(before) // SECTOR + 9, pattern(98))
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            card.save_to(image)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert image.read_bytes() == before
    assert card.save_to(image) == 2
    assert image.read_bytes()[-SECTOR:] == pattern(98)


def test_the_image_goes_away(host, image, monkeypatch):
    image.write_bytes(b"short")
    assert host.read_block(9) == bytes(SECTOR)
    image.unlink()
    assert host.read_block(0)[:5] == b"short"

    def fails(*_arguments):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.pread", fails)
    host.command(17, 3, SHORT | READ)
    assert host.wait(0) & NO_DATA
    assert host.state() == 5
    assert codes(host) == {"SOC-065"}


def test_a_full_overlay(host, monkeypatch):
    monkeypatch.setattr("vc4lab.soc.media.sd_medium.MAX_KEPT", 2)
    monkeypatch.setattr("vc4lab.soc.media.sd_medium.MAX_RANGES", 1)
    host.write_block(1, pattern(1))
    host.write_block(2, pattern(1))
    host.write_block(2, pattern(2))
    host.command(24, 3, SHORT | WRITE)
    host.give(pattern(3))
    assert host.wait(0) & BAD_DATA
    assert host.command(12, 0, BUSY) >> 19 & 1
    host.command(32, 8)
    host.command(33, 8)
    assert not host.command(38, 0, BUSY) >> 19 & 1
    host.command(32, 18)
    host.command(33, 18)
    assert host.command(38, 0, BUSY) >> 19 & 1
    assert codes(host) == {"SOC-066"}


def test_a_program_reads_and_writes(boot):
    machine = boot("card", "enable_uart=1\n")
    assert machine.run().reason is Stop.HALTED
    assert machine.uart.text[1] == "X"
    assert machine.uart.text[3:] == "V!OK\n", machine.reporter.summary()
    assert list(machine.card_slot().written) == [9]
    assert not machine.reporter.items


@pytest.mark.parametrize("seconds", [3e-5, 2e-4, 1e-3])
def test_a_state_in_the_middle(boot, tmp_path, seconds):
    first = boot("card", "enable_uart=1\n")
    first.run(seconds=seconds)
    save_state(first, tmp_path / "state")
    expected = first.run(), first.uart.text, first.clock.now, first.counter.count
    second = boot("card", "enable_uart=1\n")
    load_state(second, tmp_path / "state")
    result = second.run()
    assert result.reason is expected[0].reason
    assert (second.uart.text, second.clock.now, second.counter.count) == expected[1:]
    assert second.card_slot().written == first.card_slot().written
    assert not second.reporter.items


def test_a_state_keeps_what_was_written(host, make, tmp_path):
    host.write_block(5, pattern(99))
    host.command(32, 100)
    host.command(33, 110)
    host.command(38, 0, BUSY)
    save_state(host.machine, tmp_path / "state")
    again = Host(make())
    load_state(again.machine, tmp_path / "state")
    again.address = host.address
    assert again.read_block(5) == pattern(99)
    assert again.read_block(110) == bytes(SECTOR)
    assert again.read_block(111) == pattern(111)
    with pytest.raises(StateError, match="none is inserted"):
        load_state(make(card=None), tmp_path / "state")
