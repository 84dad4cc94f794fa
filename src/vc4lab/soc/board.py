"""The boards as data: what differs between a Pi Zero, 1, 2 and 3."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Board:
    """One row of the board table (hardware reference 8.1, 8.14, 8.15).

    Attributes
    ----------
    cpu
        Name of the core's model in the CPU engine.
    peripherals
        Physical address of the peripheral window as the ARM sees it.
    local
        Physical address of the per-core block, None where there is none.
    alias
        Top bits of the bus addresses the firmware hands out.
    ns_per_instruction
        Nominal speed; a deliberate round number, not a timing model.
    filters
        config.txt sections that apply.
    """

    name: str
    title: str
    cpu: str
    cores: int
    ram: int
    peripherals: int
    local: int | None
    alias: int
    machine_id: int
    revision: int
    kernels: tuple[str, ...]
    uart_clock: int
    core_clock: int
    arm_clock: int
    v3d_clock: int
    led_gpio: int | None
    filters: frozenset[str]
    ns_per_instruction: int = 2
    supported: bool = False
    affinity: int = 0x80000000


BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board(
            name="zero",
            title="Raspberry Pi Zero",
            cpu="1176",
            cores=1,
            ram=512 * MIB,
            peripherals=0x20000000,
            local=None,
            alias=0x40000000,
            machine_id=0xC42,
            revision=0x900093,
            kernels=("kernel.img",),
            uart_clock=48_000_000,
            core_clock=250_000_000,
            arm_clock=1_000_000_000,
            v3d_clock=250_000_000,
            led_gpio=47,
            filters=frozenset({"all", "pi0"}),
        ),
        Board(
            name="pi1",
            title="Raspberry Pi 1",
            cpu="1176",
            cores=1,
            ram=512 * MIB,
            peripherals=0x20000000,
            local=None,
            alias=0x40000000,
            machine_id=0xC42,
            revision=0x000010,
            kernels=("kernel.img",),
            uart_clock=3_000_000,
            core_clock=250_000_000,
            arm_clock=700_000_000,
            v3d_clock=250_000_000,
            led_gpio=47,
            filters=frozenset({"all", "pi1"}),
        ),
        Board(
            name="pi2",
            title="Raspberry Pi 2",
            cpu="CORTEX_A7",
            cores=4,
            ram=1024 * MIB,
            peripherals=0x3F000000,
            local=0x40000000,
            alias=0xC0000000,
            machine_id=0xC43,
            revision=0xA01041,
            kernels=("kernel7.img", "kernel.img"),
            uart_clock=48_000_000,
            core_clock=250_000_000,
            arm_clock=900_000_000,
            v3d_clock=250_000_000,
            led_gpio=47,
            filters=frozenset({"all", "pi2"}),
            supported=True,
            affinity=0x80000F00,
        ),
        Board(
            name="pi3",
            title="Raspberry Pi 3",
            cpu="CORTEX_A53",
            cores=4,
            ram=1024 * MIB,
            peripherals=0x3F000000,
            local=0x40000000,
            alias=0xC0000000,
            machine_id=0xC44,
            revision=0xA02082,
            kernels=("kernel8.img", "kernel7.img", "kernel.img"),
            uart_clock=48_000_000,
            core_clock=400_000_000,
            arm_clock=1_200_000_000,
            v3d_clock=300_000_000,
            led_gpio=None,
            filters=frozenset({"all", "pi3"}),
        ),
    )
}


class UnknownBoard(ValueError):  # noqa: N818 - said to the user as it is
    """The board's name is not in the table, or the board is not built yet."""


def find_board(name: str) -> Board:
    """The board called `name`. Raises UnknownBoard with a sentence for the user."""
    board = BOARDS.get(name.strip().lower())
    if board is None:
        raise UnknownBoard(f"There is no board {name!r}; the boards are {', '.join(BOARDS)}.")
    if not board.supported:
        ready = ", ".join(b.name for b in BOARDS.values() if b.supported)
        raise UnknownBoard(f"The {board.title} cannot be booted yet; this version has {ready}.")
    return board
