"""Register blocks: a block is declared register by register, behaviour hangs on it by name.

    class Watchdog(Block):
        NAME = "watchdog"
        OFFSET = 0x100000
        RSTC = Register(0x1C, doc="reset control")
        STATUS = Register(0x20, access="r", poll=Poll.EVENT)

        def on_write_RSTC(self, value: int) -> None: ...
        def on_read_STATUS(self) -> int: ...

A register without a handler stores what is written. `self.RSTC` is the stored value. A row of
registers (`count=4`) is stored under each offset, and its handlers get the index first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar

ReadHandler = Callable[[], int]
WriteHandler = Callable[[int], None]


class Poll(Enum):
    """What a program waits for that reads a register again and again."""

    SOON = "soon"
    """Something unknown: time goes on in small steps."""
    TIME = "time"
    """The time itself: go on in small steps, never beyond the next event."""
    EVENT = "event"
    """A scheduled event (vsync, timer match): go straight to it."""
    INPUT = "input"
    """A person typing."""
    DATA = "data"
    """Nothing: every read takes the next word out of a FIFO."""


@dataclass(frozen=True)
class Rate:
    """How a counter follows guest time: ns × multiply / divide, its bits from `shift` on."""

    multiply: int
    divide: int
    shift: int = 0

    def at(self, nanoseconds: int) -> int:
        """The counter at a moment of guest time."""
        return nanoseconds * self.multiply // self.divide >> self.shift & 0xFFFFFFFF


class Register:
    """One 32-bit register of a block, or a row of `count` registers `stride` bytes apart.

    `access` is "rw", "r" (writes are ignored) or "w" (reads give 0). `steady` says that reading it
    changes nothing, and that its value changes only by writes, events and reads of registers that
    are not steady: a poll of it is answered without its handler until then. Registers without a
    handler are steady anyway. A counter with a `rate` needs its handler only for traces. `fields`
    are what traces name: "31 full, 30 empty, 7:0 level"; `doc` is for readers of the code.
    """

    def __init__(
        self,
        offset: int,
        *,
        access: str = "rw",
        reset: int = 0,
        count: int = 1,
        stride: int = 4,
        poll: Poll = Poll.SOON,
        steady: bool = False,
        rate: Rate | None = None,
        fields: str = "",
        doc: str = "",
    ) -> None:
        self.offset = offset
        self.access = access
        self.reset = reset
        self.count = count
        self.stride = stride
        self.poll = poll
        self.steady = steady
        self.rate = rate
        self.fields = tuple(_field(field) for field in fields.split(", ")) if fields else ()
        self.doc = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Block | None, owner: type | None = None) -> int:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance.values[self.offset]

    def __set__(self, instance: Block, value: int) -> None:
        instance.values[self.offset] = value & 0xFFFFFFFF

    def offsets(self) -> list[int]:
        """Byte offsets of the row in the block."""
        return [self.offset + self.stride * i for i in range(self.count)]


def _field(text: str) -> tuple[str, int, int]:
    """Name, highest and lowest bit of "7:0 level" or "31 full"."""
    place, _, name = text.partition(" ")
    bits = place.split(":")
    high, low = bits[0], bits[-1]
    if not (name and high.isdecimal() and low.isdecimal() and 31 >= int(high) >= int(low)):
        raise ValueError(f"{text!r} is no field of a register")
    return name, int(high), int(low)


class Block:
    """A register block of the Pi. Subclasses declare `NAME` and `OFFSET` (in the window)."""

    NAME: ClassVar[str] = ""
    OFFSET: ClassVar[int] = 0
    SIZE: ClassVar[int] = 0x1000
    registers: ClassVar[dict[str, Register]] = {}
    _declared: ClassVar[dict[int, tuple[str, Register]]] = {}
    """What `register_at` finds; it is asked at each frame while a program polls."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Register)}
        cls.registers = {**cls.registers, **own}
        cls._declared = {}
        for name, declared in cls.registers.items():
            for row, offset in enumerate(declared.offsets()):
                text = f"{name}[{row}]" if declared.count > 1 else name
                cls._declared.setdefault(offset, (text, declared))
        for name in vars(cls):
            kind, _, register = name.removeprefix("on_").partition("_")
            if name.startswith(("on_read_", "on_write_")) and register not in cls.registers:
                raise TypeError(f"{cls.__name__}.{name}: {kind} handler of an undeclared register")

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.reset_registers()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.NAME!r} at 0x{self.OFFSET:x} of the peripherals>"

    def reset_registers(self) -> None:
        """Every register to its reset value."""
        for register in self.registers.values():
            for offset in register.offsets():
                self.values[offset] = register.reset

    def read_handlers(self) -> dict[int, ReadHandler]:
        """Offset in the block → function without arguments that gives the value."""
        return dict(self._handlers("on_read_", "w", self._stored))

    def write_handlers(self) -> dict[int, WriteHandler]:
        """Offset in the block → function that takes the value."""
        return dict(self._handlers("on_write_", "r", self._storing))

    def _handlers(
        self, prefix: str, forbidden: str, default: Callable[[int], Callable[..., int | None]]
    ) -> list[tuple[int, Any]]:
        found: list[tuple[int, Any]] = []
        for name, register in self.registers.items():
            handler = getattr(self, prefix + name, None)
            for index, offset in enumerate(register.offsets()):
                if handler is not None:
                    bound = handler if register.count == 1 else partial(handler, index)
                elif register.access == forbidden:
                    bound = _nothing
                else:
                    bound = default(offset)
                found.append((offset, bound))
        return found

    def steady(self) -> set[int]:
        """Offsets of the declared registers that are steady."""
        found: set[int] = set()
        for name, register in self.registers.items():
            if register.steady or not hasattr(self, "on_read_" + name):
                found.update(register.offsets())
        return found

    def rates(self) -> dict[int, Rate]:
        """Offset → rate of the counters that follow guest time."""
        return {r.offset: r.rate for r in self.registers.values() if r.rate is not None}

    def is_steady(self, offset: int) -> bool:
        """Whether an offset that is not declared is steady."""
        return False

    def _stored(self, offset: int) -> ReadHandler:
        values = self.values
        return lambda: values[offset]

    def _storing(self, offset: int) -> WriteHandler:
        values = self.values

        def store(value: int) -> None:
            values[offset] = value

        return store

    def read_other(self, offset: int) -> int:
        """A read of an offset that is not declared: 0, as reserved registers read."""
        return 0

    def write_other(self, offset: int, value: int) -> None:
        """A write to an offset that is not declared: ignored."""

    def describe(self, offset: int) -> str:
        """A name for an offset, for messages."""
        return f"{self.NAME}+0x{offset:03x}"

    def register_at(self, offset: int) -> tuple[str, Register] | None:
        """Name (with index for a row) and declaration of the register at `offset`, if any."""
        return self._declared.get(offset)


def _nothing(value: int = 0) -> int:
    return 0
