"""The boards as data: what differs between a Pi Zero, 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
SERIAL_NUMBER = 0x0000_0000_00C4_0001
A53_MIDR = 0x410FD034


@dataclass(frozen=True)
class Board:
    """One row of the board table (hardware reference 8.1, 8.9, 8.14, 8.15).

    Attributes
    ----------
    cpu, cpu64
        Names of the core's models in the CPU engine for AArch32 and AArch64 (None: has none).
    midr
        Main id register, None if the model's own is right.
    affinity
        MPIDR of core 0.
    peripherals
        Physical address of the peripheral window as the ARM sees it.
    local
        Physical address of the per-core block, None where there is none.
    alias
        Top bits of the bus addresses the firmware hands out.
    kernels
        Names looked for, in this order; those with an 8 before .img are AArch64.
    device_trees
        Names of its device tree on the card, in this order: the firmware's, then Linux's own.
    led_gpio, led_inverted
        The activity LED's pin; None: on the firmware's GPIO expander.
    hotplug_gpio
        The pin that is low while a monitor is connected; None: on the expander.
    header_uart
        Function of GPIO 14 and 15 as the firmware leaves them; with `enable_uart=1` if in
        parentheses.
    coherency
        The bit programs must set before they use caches on several cores.
    ns_per_instruction
        Nominal speed; a deliberate round number, not a timing model.
    filters
        config.txt sections that apply.
    """

    name: str
    title: str
    chip: str
    cpu: str
    cpu64: str | None
    midr: int | None
    affinity: int
    cores: int
    ram: int
    peripherals: int
    local: int | None
    alias: int
    machine_id: int
    revision: int
    kernels: tuple[str, ...]
    device_trees: tuple[str, ...]
    uart_clock: int
    core_clock: int
    arm_clock: int
    v3d_clock: int
    led_gpio: int | None
    led_inverted: bool
    hotplug_gpio: int | None
    header_uart: str
    coherency: str
    filters: frozenset[str]
    ns_per_instruction: int = 2

    @property
    def has_hyp(self) -> bool:
        """Whether its cores have a HYP mode."""
        return self.cpu != "1176"


_BCM2835: dict[str, Any] = {
    "chip": "bcm2835",
    "cpu": "1176",
    "cpu64": None,
    "midr": None,
    "affinity": 0,
    "cores": 1,
    "ram": 512 * MIB,
    "peripherals": 0x20000000,
    "local": None,
    "alias": 0x40000000,
    "machine_id": 0xC42,
    "kernels": ("kernel.img",),
    "core_clock": 250_000_000,
    "v3d_clock": 250_000_000,
    "led_gpio": 47,
    "hotplug_gpio": 46,
    "header_uart": "alt0",
    "coherency": "",
}
_BCM2836: dict[str, Any] = {
    "cores": 4,
    "ram": 1024 * MIB,
    "peripherals": 0x3F000000,
    "local": 0x40000000,
    "alias": 0xC0000000,
    "uart_clock": 48_000_000,
}
_PI2: dict[str, Any] = {
    **_BCM2836,
    "core_clock": 250_000_000,
    "arm_clock": 900_000_000,
    "v3d_clock": 250_000_000,
    "led_gpio": 47,
    "led_inverted": False,
    "hotplug_gpio": 46,
    "header_uart": "alt0",
    "filters": frozenset({"pi2"}),
}
_A53: dict[str, Any] = {
    "chip": "bcm2837",
    "cpu": "CORTEX_A7",
    "cpu64": "A53",
    "midr": A53_MIDR,
    "affinity": 0x80000000,
    "machine_id": 0xC44,
    "kernels": ("kernel8.img", "kernel8-32.img", "kernel7.img", "kernel.img"),
    "coherency": "CPUECTLR bit 6",
}

BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board(
            **_BCM2835,
            name="zero",
            device_trees=("bcm2708-rpi-zero.dtb", "bcm2835-rpi-zero.dtb"),
            title="Raspberry Pi Zero",
            revision=0x900093,
            uart_clock=48_000_000,
            arm_clock=1_000_000_000,
            led_inverted=True,
            filters=frozenset({"pi0"}),
        ),
        Board(
            **_BCM2835,
            name="pi1",
            device_trees=("bcm2708-rpi-b.dtb", "bcm2708-rpi-b-plus.dtb", "bcm2835-rpi-b-plus.dtb"),
            title="Raspberry Pi 1",
            revision=0x000010,
            uart_clock=3_000_000,
            arm_clock=700_000_000,
            led_inverted=False,
            filters=frozenset({"pi1"}),
        ),
        Board(
            **_PI2,
            name="pi2",
            device_trees=("bcm2709-rpi-2-b.dtb", "bcm2836-rpi-2-b.dtb"),
            title="Raspberry Pi 2",
            chip="bcm2836",
            cpu="CORTEX_A7",
            cpu64=None,
            midr=None,
            affinity=0x80000F00,
            machine_id=0xC43,
            revision=0xA01041,
            kernels=("kernel7.img", "kernel.img"),
            coherency="ACTLR bit 6",
        ),
        Board(
            **_PI2,
            **_A53,
            name="pi2-1.2",
            device_trees=("bcm2710-rpi-2-b.dtb", "bcm2837-rpi-2-b.dtb"),
            title="Raspberry Pi 2 revision 1.2",
            revision=0xA22042,
        ),
        Board(
            **_BCM2836,
            **_A53,
            name="pi3",
            device_trees=("bcm2710-rpi-3-b.dtb", "bcm2837-rpi-3-b.dtb"),
            title="Raspberry Pi 3",
            revision=0xA02082,
            core_clock=400_000_000,
            arm_clock=1_200_000_000,
            v3d_clock=300_000_000,
            led_gpio=None,
            led_inverted=False,
            hotplug_gpio=None,
            header_uart="(alt5)",
            filters=frozenset({"pi3"}),
        ),
    )
}
SYNONYMS = {
    "pi0": "zero", "raspi0": "zero", "raspi1ap": "pi1", "raspi2": "pi2", "raspi2b": "pi2",
    "raspi3": "pi3", "raspi3ap": "pi3", "raspi3b": "pi3",
}  # fmt: skip
"""Other names, those of QEMU's machines among them."""


class UnknownBoard(ValueError):  # noqa: N818 - said to the user as it is
    """The board's name is not in the table."""


def find_board(name: str) -> Board:
    """The board called `name`. Raises UnknownBoard with a sentence for the user."""
    wanted = name.strip().lower()
    board = BOARDS.get(SYNONYMS.get(wanted, wanted))
    if board is None:
        raise UnknownBoard(f"There is no board {name!r}. The boards are {', '.join(BOARDS)}.")
    return board


_CORE_NAMES = {
    (None, "1176"): "ARM1176",
    (None, "CORTEX_A7"): "Cortex-A7",
    (A53_MIDR, "CORTEX_A7"): "Cortex-A53",
}


def board_table() -> list[tuple[str, ...]]:
    """The table for people: a header row, then one row for each property."""
    boards = list(BOARDS.values())
    rows = [("", *(board.name for board in boards))]
    for title, text in _ROWS:
        rows.append((title, *(text(board) for board in boards)))
    return rows


def _hertz(value: int) -> str:
    return f"{value / 1e6:g} MHz"


_ROWS: tuple[tuple[str, Callable[[Board], str]], ...] = (
    ("board", lambda b: b.title),
    ("chip", lambda b: b.chip.upper()),
    ("cores", lambda b: f"{b.cores} × {_CORE_NAMES[b.midr, b.cpu]}"),
    ("AArch64", lambda b: "yes" if b.cpu64 else "no"),
    ("RAM", lambda b: f"{b.ram // MIB} MiB"),
    ("peripherals", lambda b: f"0x{b.peripherals:08x}"),
    ("local block", lambda b: f"0x{b.local:08x}" if b.local else "–"),
    ("bus alias", lambda b: f"0x{b.alias:08x}"),
    ("kernel", lambda b: ", ".join(b.kernels)),
    ("device tree", lambda b: ", ".join(b.device_trees)),
    ("machine id", lambda b: f"0x{b.machine_id:x}"),
    ("revision", lambda b: f"0x{b.revision:06x}"),
    ("PL011 clock", lambda b: _hertz(b.uart_clock)),
    ("core clock", lambda b: _hertz(b.core_clock)),
    ("ARM clock", lambda b: _hertz(b.arm_clock)),
    ("V3D clock", lambda b: _hertz(b.v3d_clock)),
    ("GPIO 14/15", lambda b: f"{b.header_uart[1:-1]} with enable_uart=1"
     if b.header_uart.startswith("(") else b.header_uart),
    ("ACT LED", lambda b: "firmware expander, 130" if b.led_gpio is None
     else f"GPIO {b.led_gpio}" + (", inverted" if b.led_inverted else "")),
    ("monitor", lambda b: "firmware expander, 132" if b.hotplug_gpio is None
     else f"GPIO {b.hotplug_gpio}, low while connected"),
    ("coherency", lambda b: b.coherency or "–"),
    ("config.txt filter", lambda b: " ".join(f"[{name}]" for name in sorted(b.filters))),
)  # fmt: skip
