"""The clock tree: PLLs (A2W, P + 0x102000) and clock generators (CM, P + 0x101000).

A PLL multiplies the crystal; each of its channels divides that again; a generator chooses a channel
and divides once more, by 12 bits before the point and 12 after it. The firmware leaves the tree as
`Plls._set` and `ClockManager._start_generators` say; the rates are those that tags report.
Sources: BCM2835 ARM Peripherals 6.3 (generators); the PLLs are not documented but in Linux,
drivers/clk/bcm/clk-bcm2835.c, whose names these are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Register
from vc4lab.soc.address.block import Block, Storage
from vc4lab.soc.boot import clock_rates

PASSWORD = 0x5A000000
CRYSTAL = 19_200_000
ENABLE, KILL, BUSY, FRACTION = 1 << 4, 1 << 5, 1 << 7, 1 << 9
GATE = 1 << 6
KEPT = 0xFFFFFF
WHOLE = 4096
"""1.0 of a generator's divider."""
OSCILLATOR, PLLA, PLLC, PLLD, PLLH = 1, 4, 5, 6, 7
"""Numbers of a generator's sources."""

GENERATORS = {
    "GNRIC": 0x00, "VPU": 0x08, "SYS": 0x10, "PERIA": 0x18, "PERII": 0x20, "H264": 0x28,
    "ISP": 0x30, "V3D": 0x38, "CAM0": 0x40, "CAM1": 0x48, "CCP2": 0x50, "DSI0E": 0x58,
    "DSI0P": 0x60, "DPI": 0x68, "GP0": 0x70, "GP1": 0x78, "GP2": 0x80, "HSM": 0x88, "OTP": 0x90,
    "PCM": 0x98, "PWM": 0xA0, "SLIM": 0xA8, "SMI": 0xB0, "TEC": 0xC8, "TD0": 0xD0, "TD1": 0xD8,
    "TSENS": 0xE0, "TIMER": 0xE8, "UART": 0xF0, "VEC": 0xF8, "DSI1E": 0x158, "DSI1P": 0x160,
    "DFT": 0x168, "PULSE": 0x190, "SDC": 0x1A8, "ARM": 0x1B0, "AVEO": 0x1B8, "EMMC": 0x1C0,
}  # fmt: skip
"""Offset of each generator's control register; its divider follows."""
CORE_CLOCKED = frozenset(("VPU", "H264", "ISP", "V3D", "SDC"))
"""Generators that choose among the PLLs' channels for the core, the others among those for the
peripherals."""
CM_PCM, CM_PWM = GENERATORS["PCM"], GENERATORS["PWM"]
OTHERS = {
    0x0C0: "TCNTCTL", 0x0C4: "TCNTCNT", 0x100: "OSCCOUNT", 0x104: "PLLA", 0x108: "PLLC",
    0x10C: "PLLD", 0x110: "PLLH", 0x114: "LOCK", 0x118: "EVENT", 0x170: "PLLB",
}  # fmt: skip
LOCK, OSCCOUNT, TCNTCNT = 0x114, 0x100, 0x0C4
ANALOG_RESET = 1 << 8
"""A bit of a PLL's register in CM: it does not oscillate."""


class Pll(NamedTuple):
    """A PLL: which of the rows in A2W it is, its register in CM and its bit in LOCK.

    `halved` is the bit of ANA1 by which it multiplies twice as much as NDIV says. `channels` are
    their names and rows.
    """

    row: int
    control: int
    lock: int
    halved: int
    channels: dict[str, int]


PLLS = {
    "PLLA": Pll(0, 0x104, 8, 14, {"DSI0": 0, "CORE": 1, "PER": 2, "CCP2": 3}),
    "PLLC": Pll(1, 0x108, 10, 14, {"CORE2": 0, "CORE1": 1, "PER": 2, "CORE0": 3}),
    "PLLD": Pll(2, 0x10C, 11, 14, {"DSI0": 0, "CORE": 1, "PER": 2, "DSI1": 3}),
    "PLLH": Pll(3, 0x110, 12, 11, {"AUX": 0, "RCAL": 1, "PIX": 2, "STS": 3}),
    "PLLB": Pll(7, 0x170, 9, 14, {"ARM": 0, "SP0": 1, "SP1": 2, "SP2": 3}),
}
ROW, ANA, CTRL, FRAC, CHANNEL, CHANNELS = 0x20, 0x010, 0x100, 0x200, 0x300, 0x100
"""Bytes between PLLs; places of a PLL's registers; bytes between its channels."""
XOSC_CTRL = 0x190
READBACK = 0x800
"""From here on each register is found again: what the PLL has taken over."""
POWER_DOWN, RUNS = 1 << 16, 1 << 17
MULTIPLIER, PREDIVIDER_AT = 0x3FF, 12
FRACTION_BITS = 20
CHANNEL_OFF = 1 << 8
HIGHEST_MULTIPLIED = 1_750_000_000
"""Beyond that a PLL needs the `halved` bit."""
SLOWER = {"RCAL": 10, "PIX": 10}
"""Channels that are divided once more by what follows them."""
PARENTS = {
    PLLA: (("PLLA", "CORE"), ("PLLA", "PER")),
    PLLC: (("PLLC", "CORE0"), ("PLLC", "PER")),
    PLLD: (("PLLD", "CORE"), ("PLLD", "PER")),
    PLLH: (("PLLH", "AUX"), ("PLLH", "AUX")),
    8: (("PLLC", "CORE1"), None),
    9: (("PLLC", "CORE2"), None),
}
"""Channels that a generator's source stands for: the core's and that for the peripherals."""
MEASURED = {
    1: "H264", 2: "ISP", 3: "SDC", 4: "V3D", 5: "VPU", 6: "OTP", 12: "DSI0P", 13: "DSI1P",
    14: "CAM0", 15: "CAM1", 17: "DPI", 18: "DSI0E", 19: "DSI1E", 20: "GP0", 21: "GP1", 22: "HSM",
    23: "PCM", 24: "PWM", 25: "SLIM", 27: "SMI", 28: "UART", 29: "VEC", 38: "AVEO", 39: "EMMC",
}  # fmt: skip
"""Numbers by which TCNTCTL chooses what is counted."""
GHZ = 1_000_000_000
HIGHEST_CHANNEL, SLOWEST = 1_200_000_000, 700_000_000
"""In Hz: the fastest of a PLL's channels for the core; the slowest of a PLL itself."""
_PLAIN = Register(0)
"""Stands for the registers of PLLs, which have names only."""


def is_allowed(value: int, block: Block, reporter: Reporter) -> bool:
    """Whether a write carries the password; one without it has no effect."""
    if value & 0xFF000000 == PASSWORD:
        return True
    reporter.report(
        "SOC-055",
        f"0x{value:08x} is written to a register of {block.NAME} without the password 0x5A in its "
        "top byte; the write has no effect",
        block=block.NAME,
    )
    return False


def _multiple(hertz: int) -> int:
    """The highest rate of a channel of which a clock is a whole part."""
    return hertz * max(HIGHEST_CHANNEL // hertz, 1)


class Plls(Storage):
    """A2W: what each PLL multiplies by, and what its channels divide by. They lock at once."""

    NAME = "a2w"
    OFFSET = 0x102000

    def __init__(self, reporter: Reporter, arm: int, core: int, v3d: int, *, all_run: bool = True) -> None:
        """`arm`, `core`, `v3d`: Hz of the clocks that are made from PLLs B, C and A."""
        super().__init__()
        self._reporter = reporter
        self.changed: Callable[[], None] = lambda: None
        """Called when one was switched on or off."""
        self._set("PLLA", 2 * _multiple(v3d), {"CORE": 2} if all_run else {}, runs=all_run)
        self._set("PLLB", 2 * arm, {"ARM": 2})
        self._set("PLLC", 2 * _multiple(core), {"CORE0": 2, "PER": 2})
        self._set("PLLD", 2 * GHZ, {"CORE": 4, "PER": 4})
        self._set("PLLH", 1_728_000_000, {"AUX": 8})
        self.values[XOSC_CTRL] = 0xFF

    def set_pixel_clock(self, hertz: int) -> None:
        """Set HDMI's clock as the firmware does where a program asks it for that."""
        slower = SLOWER["PIX"]
        divider = max(1, min(-(-SLOWEST // (slower * max(hertz, 1))), 0xFF))
        self._set("PLLH", hertz * slower * divider, {"PIX": divider})
        self.changed()

    def _set(self, name: str, hertz: int, dividers: dict[str, int], *, runs: bool = True) -> None:
        """How the firmware leaves a PLL."""
        pll = PLLS[name]
        at = ROW * pll.row
        halved = hertz > HIGHEST_MULTIPLIED
        steps = (hertz >> halved) << FRACTION_BITS
        multiplier = -(-steps // CRYSTAL)
        values = self.values
        values[CTRL + at] = multiplier >> FRACTION_BITS | 1 << PREDIVIDER_AT
        values[CTRL + at] |= RUNS if runs else POWER_DOWN
        values[FRAC + at] = multiplier & ((1 << FRACTION_BITS) - 1)
        values[ANA + at + 4] = halved << pll.halved
        for channel, row in pll.channels.items():
            divider = dividers.get(channel, CHANNEL_OFF)
            values[CHANNEL + CHANNELS * row + at] = divider

    def write_other(self, offset: int, value: int) -> None:
        if not offset & READBACK and is_allowed(value, self, self._reporter):
            self.values[offset] = value & KEPT
            self.changed()

    def read_other(self, offset: int) -> int:
        return super().read_other(offset & ~READBACK)

    def is_steady(self, offset: int) -> bool:
        return True

    def has_power(self, name: str) -> bool:
        """Whether a PLL is not powered down."""
        return not self.values[CTRL + ROW * PLLS[name].row] & POWER_DOWN

    def frequency(self, name: str) -> float:
        """Hz of a PLL itself, 0 if it has no power."""
        pll = PLLS[name]
        at = ROW * pll.row
        control = self.values[CTRL + at]
        before = control >> PREDIVIDER_AT & 7
        if control & POWER_DOWN or not before:
            return 0.0
        whole = (control & MULTIPLIER) << FRACTION_BITS
        steps = whole + (self.values[FRAC + at] & ((1 << FRACTION_BITS) - 1))
        steps <<= self.values[ANA + at + 4] >> pll.halved & 1
        return CRYSTAL * steps / (before << FRACTION_BITS)

    def channel(self, name: str, channel: str) -> float:
        """Hz of a channel, to the next kHz: in steps of the multiplier no round number is met."""
        pll = PLLS[name]
        divider = self.values[CHANNEL + CHANNELS * pll.channels[channel] + ROW * pll.row]
        if divider & CHANNEL_OFF:
            return 0.0
        hertz = self.frequency(name) / ((divider & 0xFF or 0x100) * SLOWER.get(channel, 1))
        return round(hertz, -3)

    def register_at(self, offset: int) -> tuple[str, Register] | None:
        name = _PLL_NAMES.get(offset & ~READBACK)
        if name is None:
            return None
        return name + ("R" if offset & READBACK else ""), _PLAIN


def _pll_names() -> dict[int, str]:
    names = {XOSC_CTRL: "XOSC_CTRL"}
    for name, pll in PLLS.items():
        at = ROW * pll.row
        names |= {CTRL + at: f"{name}_CTRL", FRAC + at: f"{name}_FRAC"}
        names |= {ANA + at + 4 * n: f"{name}_ANA{n}" for n in range(4)}
        for channel, row in pll.channels.items():
            names[CHANNEL + CHANNELS * row + at] = f"{name}_{channel}"
    return names


_PLL_NAMES = _pll_names()
_NAMES = {
    **OTHERS,
    **{offset: f"{name}CTL" for name, offset in GENERATORS.items()},
    **{offset + 4: f"{name}DIV" for name, offset in GENERATORS.items()},
}
_CONTROLS = frozenset(GENERATORS.values())


class ClockManager(Block):
    """CM registers keep what is written (with the password); busy follows enable.

    Parameters
    ----------
    rates
        Hertz of the firmware's clocks at the start.
    """

    NAME = "cm"
    OFFSET = 0x101000
    WORDS = Register(0x00, count=0x200 // 4)

    def __init__(self, reporter: Reporter, plls: Plls, rates: dict[int, int]) -> None:
        super().__init__()
        self._reporter = reporter
        self._plls = plls
        plls.changed = self._look_at_locks
        self._start_generators(rates)
        self._look_at_locks()

    def _start_generators(self, rates: dict[int, int]) -> None:
        """How the firmware leaves them; sound has no clock."""
        gpu = PLLA if self._plls.has_power("PLLA") else PLLC
        wanted = {
            "VPU": (PLLC, rates[clock_rates.CORE]),
            "H264": (gpu, rates[clock_rates.H264]),
            "ISP": (gpu, rates[clock_rates.ISP]),
            "V3D": (gpu, rates[clock_rates.V3D_CLOCK]),
            "SDC": (PLLD, 166_666_667),
            "UART": (PLLD, rates[clock_rates.UART]),
            "EMMC": (PLLD, rates[clock_rates.EMMC]),
            "HSM": (PLLD, 163_682_864),
            "GP1": (PLLD, 25_000_000),
            "GP2": (OSCILLATOR, 32_768),
            "TIMER": (OSCILLATOR, 1_000_000),
            "TSENS": (OSCILLATOR, 1_920_000),
            "OTP": (OSCILLATOR, 4_800_000),
        }
        for name, (source, hertz) in wanted.items():
            self._start(name, source, hertz)
        self.values[GENERATORS["PERII"]] = GATE

    def _start(self, name: str, source: int, hertz: int) -> None:
        """Let a generator run as near a rate as it can."""
        at = GENERATORS[name]
        divider = round(self._source(source, name) / max(hertz, 1) * WHOLE)
        divider = max(WHOLE, min(divider, KEPT))
        fraction = FRACTION if divider % WHOLE else 0
        self.values[at] = source | ENABLE | GATE | BUSY | fraction
        self.values[at + 4] = divider

    def _source(self, number: int, name: str) -> float:
        """Hz of one of the sources that a generator can choose."""
        if number == OSCILLATOR:
            return float(CRYSTAL)
        found = PARENTS.get(number, (None, None))[name not in CORE_CLOCKED]
        return 0.0 if found is None else self._plls.channel(*found)

    def frequency(self, control: int) -> float:
        """Hz of the clock whose control register is at offset `control`, 0 if it is off."""
        value, divider = self.values[control], self.values[control + 4]
        whole = divider / WHOLE if value >> 9 & 3 else divider >> 12
        if not value & ENABLE or not whole:
            return 0.0
        name = _NAMES.get(control, "").removesuffix("CTL")
        return self._source(value & 15, name) / whole

    def start_vec(self, hertz: int) -> None:
        """Start the clock of analogue video as the firmware does where a program asks it for that."""
        self._start("VEC", PLLD, hertz)

    def on_write_WORDS(self, index: int, value: int) -> None:
        if not is_allowed(value, self, self._reporter):
            return
        offset = 4 * index
        value &= KEPT
        if offset in _CONTROLS:
            if value & KILL:
                value &= ~ENABLE
            value = value & ~BUSY | (value & ENABLE) << 3
        if offset == LOCK:
            return
        self.values[offset] = value
        if offset == OSCCOUNT:
            self._count(value)
        self._look_at_locks()

    def _count(self, ticks: int) -> None:
        """Count a clock's ticks while the crystal has so many; that is over at once."""
        control = self.values[0x0C0]
        name = MEASURED.get(control & 15 | (control >> 12 & 3) << 4)
        hertz = self.frequency(GENERATORS[name]) if name is not None else 0.0
        self.values[TCNTCNT] = int(hertz * ticks / CRYSTAL) & KEPT
        self.values[OSCCOUNT] = 0

    def _look_at_locks(self) -> None:
        """A PLL has locked if it has power and is not held in reset."""
        locked = 0
        for name, pll in PLLS.items():
            held = self.values[pll.control] & ANALOG_RESET
            locked |= (self._plls.has_power(name) and not held) << pll.lock
        self.values[LOCK] = locked

    def register_at(self, offset: int) -> tuple[str, Register] | None:
        found = super().register_at(offset)
        return (_NAMES.get(offset, found[0]), found[1]) if found else None
