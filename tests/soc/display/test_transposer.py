"""TXP writes what the HVS composes; VEC and the gamma ramps change what the screen shows."""

import numpy as np
import pytest
from tests.soc.display.lists import BGRA, END, HVS, LISTS, PICTURE, PV2, RGBA8888, Display, plane  # fmt: skip

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.images.tiling import Tiling, detile
from vc4lab.memory import GuestMemory
from vc4lab.scanout.display_unknowns import Unknowns
from vc4lab.soc.display.written_picture import ALL_BYTES, Place, packed
from vc4lab.soc.states.state import load_state, save_state

COUNTS = bytes.fromhex("010080e2fdffffea")
TXP, VEC, CM = 0x004000, 0x806000, 0x101000
LINE = 1 << 11
TARGET = 0x200000
SIZE = WIDTH, HEIGHT = 32, 16
GO, EI, BYTES, ABORT, BUSY = 1, 1 << 2, 0xF << 16, 1 << 14, 2
ARGB8888, RGB888, RGB565, ABGR4444 = (number << 8 for number in (13, 9, 7, 0))
ALPHA, INVERT, T_TILES, UTILES = 1 << 20, 1 << 12, 1 << 5, 1 << 7


class Writer(Display):
    """Channel 2 shows a picture of noise."""

    def __init__(self, machine):
        super().__init__(machine)
        noise = np.random.default_rng(5).integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
        self.picture = noise
        machine.memory.write(PICTURE, noise.tobytes())
        for number, word in enumerate([*plane(RGBA8888, BGRA, SIZE, PICTURE, 4 * WIDTH), END]):
            self[LISTS + 4 * (64 + number)] = word
        self[HVS + 0x28] = 64
        self[HVS] = 1 << 31 | 3 << 18
        self[HVS + 0x60] = 1 << 31 | WIDTH << 12 | HEIGHT

    def write_back(self, control, *, pitch=4 * WIDTH, target=TARGET, size=SIZE):
        self[TXP] = target | 0xC0000000
        self[TXP + 4] = pitch
        self[TXP + 8] = size[1] << 16 | size[0]
        self[TXP + 0xC] = GO | EI | BYTES | control
        self.machine.run(seconds=0.08)

    def written(self, count=4 * WIDTH * HEIGHT):
        return self.machine.memory.array(TARGET, count).copy()

    @property
    def rgb(self):
        """As `BGRA` has the picture's bytes: blue first in Linux's ARGB8888."""
        return self.picture[..., :3]


@pytest.fixture
def writer(boot):
    return Writer(boot(COUNTS))


def test_the_composed_picture_is_written_and_an_interrupt_comes(writer):
    lines = writer.machine.interrupts
    writer.machine.memory.fill(TARGET, 4 * WIDTH * HEIGHT, 0xAA)
    writer[TXP] = TARGET
    writer[TXP + 4], writer[TXP + 8] = 4 * WIDTH, HEIGHT << 16 | WIDTH
    writer[TXP + 0xC] = GO | EI | BYTES | ARGB8888 | INVERT
    assert writer[TXP + 0xC] & (GO | BUSY) == BUSY
    assert writer[TXP + 0xC] >> 24 == 0x54
    assert not lines.lines & LINE
    assert writer[TXP + 0x10] < HEIGHT
    writer.machine.run(seconds=0.001)
    assert writer[TXP + 0xC] & BUSY == 0
    assert writer[TXP + 0x10] == HEIGHT
    assert lines.lines & LINE
    found = writer.written().reshape(HEIGHT, WIDTH, 4)
    assert (found[..., :3] == writer.machine.hardware.hvs.pixels(2)[..., :3]).all()
    assert (found[..., :3] == writer.rgb).all()
    assert (found[..., 3] == 255).all()
    writer[TXP + 0xC] = writer[TXP + 0xC] & ~EI
    assert not lines.lines & LINE
    assert not writer.machine.reporter.items


def test_formats_and_alpha(writer):
    blue, green, red = (writer.rgb[..., n].astype(int) for n in range(3))
    writer.write_back(RGB888, pitch=3 * WIDTH)
    assert (writer.written(3 * WIDTH * HEIGHT).reshape(HEIGHT, WIDTH, 3) == writer.rgb).all()
    writer.write_back(RGB565, pitch=2 * WIDTH)
    words = writer.written(2 * WIDTH * HEIGHT).view("<u2").reshape(HEIGHT, WIDTH)
    assert (words == (red >> 3 << 11 | green >> 2 << 5 | blue >> 3)).all()
    writer.write_back(ABGR4444 | ALPHA, pitch=2 * WIDTH)
    words = writer.written(2 * WIDTH * HEIGHT).view("<u2").reshape(HEIGHT, WIDTH)
    assert (words == (15 << 12 | blue >> 4 << 8 | green >> 4 << 4 | red >> 4)).all()
    for control, alpha in ((0, 0), (INVERT, 255), (ALPHA, 255), (ALPHA | INVERT, 0)):
        writer.write_back(ARGB8888 | control)
        assert (writer.written().reshape(HEIGHT, WIDTH, 4)[..., 3] == alpha).all()


def test_a_choice_of_alpha_and_pace(boot):
    chosen = Unknowns({"txp_alpha": "zero", "txp_pace": "display"})
    writer = Writer(boot(COUNTS, unknowns=chosen))
    writer[TXP + 8] = HEIGHT << 16 | WIDTH
    assert writer.machine.hardware.txp._duration == pytest.approx(1e9 / 60, rel=1e-6)
    writer.write_back(ARGB8888 | ALPHA)
    assert (writer.written().reshape(HEIGHT, WIDTH, 4)[..., 3] == 0).all()


@pytest.mark.parametrize(
    ("control", "tiling", "pitch"), [(T_TILES, Tiling.T, 7), (T_TILES | UTILES, Tiling.LT, 4)]
)
def test_tiles(writer, control, tiling, pitch):
    columns = WIDTH // (32 if tiling is Tiling.T else 4)
    writer.write_back(ARGB8888 | control, pitch=columns << pitch)
    memory = writer.machine.memory.view(TARGET, 1 << 16)
    texels = detile(memory, WIDTH, HEIGHT, 32, tiling)
    found = np.ascontiguousarray(texels).view(np.uint8).reshape(HEIGHT, WIDTH, 4)
    assert (found[..., :3] == writer.rgb).all()


def test_a_picture_that_is_larger_than_its_buffer_meets_the_guard_zone(boot):
    writer = Writer(boot(COUNTS, reporter=Reporter(strict=True)))
    pool = writer.machine.videocore.pool
    whole, short = (pool.allocate(4 * WIDTH * HEIGHT - less) for less in (0, 100))
    writer.write_back(ARGB8888, target=whole.address)
    with pytest.raises(StrictStop) as stop:
        writer.write_back(ARGB8888, target=short.address)
    text = f"TXP has written 0 bytes past the end of VideoCore memory {short.handle}"
    assert text in str(stop.value.diagnostic)


@pytest.mark.parametrize("mode", ["check", "stale"])
def test_a_picture_is_the_same_beside_caches(boot, mode):
    writer = Writer(boot(COUNTS, caches=mode))
    writer.write_back(ARGB8888)
    assert (writer.written().reshape(HEIGHT, WIDTH, 4)[..., :3] == writer.rgb).all()
    assert not writer.machine.reporter.items


def test_only_enabled_bytes_are_written():
    memory = GuestMemory(1 << 20)
    pixels = packed(np.full((2, 4, 4), 0x77, np.uint8), "ARGB", dict.fromkeys("RGBA", 8), 0x55)
    assert pixels.shape == (2, 4, 4)
    Place(64, 32, 4, 2, 32, Tiling.RASTER).store(memory, pixels, 0b1010)
    assert memory.read(64, 8) == bytes.fromhex("0077005500770055")
    assert memory.read(96, 4) == bytes.fromhex("00770055")
    Place(4096, 1 << 4, 4, 2, 32, Tiling.LT).store(memory, pixels, 0b0001)
    assert memory.read(4096, 4) == bytes.fromhex("77000000")
    Place(64, 32, 4, 2, 32, Tiling.RASTER).store(memory, pixels, ALL_BYTES)
    assert memory.read(64, 4) == bytes.fromhex("77777755")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"target": 0x3FFFFF00}, "does not fit into RAM"),
        ({"pitch": 0xFFFFFFFF}, "does not fit into RAM"),
        ({"control": 5 << 8}, "format 5 is none"),
        ({"control": RGB888 | T_TILES}, "tiles of pixels with 24 bits"),
        ({"control": ARGB8888 | T_TILES, "pitch": 0}, "a row of 0 tiles is narrower"),
        ({"size": (0xFFFF, 0xFFFF)}, "65535x65535 pixels are to be written of a picture of 32x16"),
        ({"size": (0, 0)}, "0x0 pixels"),
    ],
)
def test_what_cannot_be_written_is_named(writer, more, text):
    writer.write_back(more.pop("control", ARGB8888), **more)
    (item,) = writer.machine.reporter.items
    assert (item.code, item.block) == ("SOC-097", "txp")
    assert text in item.message
    assert not writer[TXP + 0xC] & BUSY
    assert writer.machine.interrupts.lines & LINE


@pytest.mark.parametrize("bit", [3, 4, 6, 13])
def test_what_is_not_done_is_said(writer, bit):
    writer.write_back(ARGB8888 | 1 << bit)
    assert [item.code for item in writer.machine.reporter.items] == ["SOC-096"]
    assert (writer.written().reshape(HEIGHT, WIDTH, 4)[..., :3] == writer.rgb).all()


def test_a_channel_that_is_off_lets_it_wait_until_it_is_on_or_given_up(writer):
    writer[HVS + 0x60] = 0
    writer.write_back(ARGB8888)
    assert writer[TXP + 0xC] & BUSY
    (item,) = writer.machine.reporter.items
    assert "channel 2, which is off" in item.message
    writer[TXP + 0xC] = ABORT
    assert not writer[TXP + 0xC] & BUSY
    writer.write_back(ARGB8888)
    writer[HVS + 0x60] = 1 << 31 | WIDTH << 12 | HEIGHT
    writer.machine.run(seconds=0.03)
    assert not writer[TXP + 0xC] & BUSY
    assert (writer.written().reshape(HEIGHT, WIDTH, 4)[..., :3] == writer.rgb).all()
    assert writer.machine.reporter.counts["SOC-097"] == 1


def test_a_state_that_is_saved_while_it_writes(writer, boot, tmp_path):
    writer[TXP] = TARGET
    writer[TXP + 4], writer[TXP + 8] = 4 * WIDTH, HEIGHT << 16 | WIDTH
    writer[HVS + 0x78] = 0
    writer[HVS + 0xE0] = 9
    writer[TXP + 0xC] = GO | EI | BYTES | ARGB8888
    save_state(writer.machine, tmp_path / "a.state")
    other = boot(COUNTS)
    load_state(other, tmp_path / "a.state")
    assert other.hardware.hvs.ramps[0] == 9
    assert other.bus.read(TXP + 0xC, 4) & BUSY
    other.run(seconds=0.001)
    assert other.interrupts.lines & LINE
    found = other.memory.array(TARGET, 4 * WIDTH * HEIGHT).reshape(HEIGHT, WIDTH, 4)
    assert (found[..., :3] == writer.rgb).all()


def test_what_txp_takes_is_on_no_screen(writer):
    assert writer.machine.hardware.hvs.shown is None
    writer[HVS] = 1 << 31 | 2 << 18
    assert writer.machine.hardware.hvs.shown == 2


def test_a_gamma_ramp_changes_the_picture(writer):
    def ramp(step):
        writer[HVS + 0x78] = 1 << 31 | 2 * 768
        for _colour in range(3):
            for value in range(256):
                writer[HVS + 0xE0] = step(value)

    hvs = writer.machine.hardware.hvs
    writer[HVS] = 1 << 31 | 2 << 18
    plain, content = hvs.pixels(2).copy(), hvs.content()
    ramp(lambda value: 255 - value)
    assert (hvs.pixels(2) == plain).all(), "it is not switched on"
    writer[HVS + 0x64] = 1 << 29
    assert (hvs.pixels(2)[..., :3] == 255 - plain[..., :3]).all()
    assert not hvs.holds(content)
    ramp(lambda value: value)
    assert (hvs.pixels(2)[..., :3] == plain[..., :3]).all()
    for address in (9 * 256, 0xFFFF, 0x7FFFFFFF):
        writer[HVS + 0x78] = address
        writer[HVS + 0xE0] = 1
    assert not writer.machine.reporter.items


def test_a_colour_matrix_changes_the_picture_of_one_channel(writer):
    """As vc4.ko sets a CTM that makes red of blue, green of red, and half of minus green and all of
    blue of blue."""
    hvs = writer.machine.hardware.hvs
    writer[HVS] = 1 << 31 | 2 << 18
    plain, content = hvs.pixels(2).astype(int), hvs.content()
    one, minus_half = 0x1FF, 1 << 9 | 0x100
    writer[HVS + 0x84] = one << 20 | one  # of blue: to red, to green, to blue
    writer[HVS + 0x88] = minus_half  # of green
    writer[HVS + 0x8C] = one << 10  # of red
    writer[HVS + 0x80] = 2 << 24 | 5 << 16
    assert (hvs.pixels(2) == plain).all(), "it is another channel's"
    writer[HVS + 0x80] = 3 << 24 | 5 << 16 | 0xFF
    got = hvs.pixels(2).astype(int)
    blue, green, red = (plain[..., n] for n in range(3))
    assert (got[..., 2] == np.minimum(blue + 5, 255)).all()
    assert (got[..., 1] == red).all()
    assert (got[..., 0] == np.clip((511 * blue - 256 * green + 256 >> 9) - 1, 0, 255)).all()
    assert not hvs.holds(content)


def test_vec_gives_pixel_valve_2_its_clock(boot):
    """An eighth of VEC's own: PLLD's 500 MHz by 4 here."""
    display = Display(boot(COUNTS))
    display.start(720, 240)
    valve = display.machine.hardware.pixel_valves[1]
    display[CM + 0xF8] = 0x5A000000 | 6
    display[CM + 0xFC] = 0x5A000000 | 4 << 12
    display[CM + 0xF8] = 0x5A000000 | 1 << 4 | 6
    display[PV2] = 2 << 2 | 1
    assert valve.period == pytest.approx(1e9 * 760 * 270 / 15.625e6, rel=1e-3)
    display[PV2] = 1 << 2 | 1
    assert valve.period == pytest.approx(1e9 * 760 * 270 / 17.28e6, rel=1e-3)


def test_vec_keeps_what_is_written_and_names_colour_bars(boot):
    display = Display(boot(COUNTS))
    vec = next(b for _at, b in display.machine.bus.blocks if b.NAME == "vec")
    for register in vec.registers.values():
        display[VEC + register.offset] = 8
    assert display[VEC + 0x190] == 8
    assert not display.machine.reporter.items
    display[VEC + 0x188] = 1 << 16
    (item,) = display.machine.reporter.items
    assert (item.code, item.block) == ("SOC-096", "vec")
    assert vec.describe(0x208) == "vec.CFG"
