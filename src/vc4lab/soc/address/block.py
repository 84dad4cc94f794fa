"""Register blocks of the Pi: where they are on the bus, and what the bus asks of them."""

from __future__ import annotations

from typing import ClassVar

from vc4lab.registers import Block as Declared
from vc4lab.registers import Poll, Rate
from vc4lab.soc.clock import FAR


class Block(Declared):
    """A register block of the Pi. Subclasses declare `NAME` and `OFFSET` (in the window).

    Its `values` go by the offsets of the registers. Traces of the category `TRACED` show it.
    """

    NAME: ClassVar[str] = ""
    OFFSET: ClassVar[int] = 0
    SIZE: ClassVar[int] = 0x1000
    TRACED: ClassVar[str] = "mmio"
    changes_at = FAR
    """When a timed register that was read last changes by itself (guest time in ns)."""
    rates: ClassVar[dict[int, Rate]] = {}
    """Offset → rate of the counters that follow guest time."""
    timed: ClassVar[tuple[int, ...]] = ()
    """Offsets of the registers that change by themselves at a known moment."""
    timers: ClassVar[tuple[int, ...]] = ()
    """Offsets of the registers that are read to see the time."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = cls.registers.values()
        cls.rates = {register.offset: register.rate for register in declared if register.rate is not None}
        cls.timed = tuple(at for register in declared if register.timed for at in register.offsets())
        timers = [register.offsets() for register in declared if register.poll is Poll.TIME]
        cls.timers = tuple(at for offsets in timers for at in offsets)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.NAME!r} at 0x{self.OFFSET:x} of the peripherals>"

    @staticmethod
    def key(_name: str, offset: int, /) -> int:
        return offset

    def steady(self) -> set[int]:
        """Offsets of the declared registers that are steady."""
        found: set[int] = set()
        for name, register in self.registers.items():
            if register.steady or not hasattr(self, "on_read_" + name):
                found.update(register.offsets())
        return found

    def is_steady(self, offset: int) -> bool:
        """Whether an offset that is not declared is steady."""
        return False

    def read_other(self, offset: int) -> int:
        """A read of an offset that is not declared: 0, as reserved registers read."""
        return 0

    def write_other(self, offset: int, value: int) -> None:
        """A write to an offset that is not declared: ignored."""

    def describe(self, offset: int) -> str:
        """A name for an offset, for messages."""
        found = self.register_at(offset)
        return f"{self.NAME}.{found[0]}" if found else f"{self.NAME}+0x{offset:03x}"


class Storage(Block):
    """A block whose registers, but for those that are declared, keep what is written."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._first_values = {**dict.fromkeys(range(0, cls.SIZE, 4), 0), **cls._first_values}

    def read_other(self, offset: int) -> int:
        return self.values.get(offset & ~3, 0)

    def write_other(self, offset: int, value: int) -> None:
        if offset in self.values:
            self.values[offset] = value
