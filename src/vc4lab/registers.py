"""Register blocks, of the SoC and of the V3D: declared, with behaviour that hangs on the names.

    class Watchdog(Block):
        RSTC = Register(0x1C, doc="reset control")
        STATUS = Register(0x20, access="r", fields="31 full, 7:0 level", poll=Poll.EVENT)

        def on_write_RSTC(self, value: int) -> None: ...
        def on_read_STATUS(self) -> int: ...

A register without a handler keeps what is written, and calls the method that it names by `then`.
`self.RSTC` is the stored value. A row of registers (`count=4`) is stored under each name,
and its handlers get the index first. Traces, saved states and messages take names, values and
fields from here.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from vc4lab.bits import Layout

ReadHandler = Callable[[], int]
WriteHandler = Callable[[int], None]
ACCESSES = frozenset(("rw", "r", "w", "w1c", "w1s"))
_WORD = 0xFFFFFFFF


class Poll(Enum):
    """Says what a program waits for that reads a register again and again."""

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
        return nanoseconds * self.multiply // self.divide >> self.shift & _WORD


class Register:
    """One 32-bit register of a block, or a row of `count` registers `stride` bytes apart.

    `access` is "rw", "r" (writes are ignored), "w" (reads give 0), "w1c" or "w1s" (the bits that
    are written as 1 are cleared, or set); `bits` are those that a write reaches, `then` names the
    method of the block that is called after it. `fields` are what traces name: "31 full, 7:0
    level", or a `Layout`. `names` are those of a row, "PCTR{}" (by default "PCTR[0]" and so on);
    `doc` is for readers of the code.

    `steady` says that reading it changes nothing, and that its value changes only by writes, events
    and reads of registers that are not steady: a poll of it is answered without its handler until
    then. Registers without a handler are steady anyway. One that is `timed` changes by itself as
    well, next at the moment that the block's `changes_at` has after a read. A counter with a `rate`
    needs its handler only for traces.
    """

    def __init__(
        self,
        offset: int,
        *,
        access: str = "rw",
        reset: int = 0,
        bits: int = _WORD,
        count: int = 1,
        stride: int = 4,
        names: str = "",
        poll: Poll = Poll.SOON,
        steady: bool = False,
        timed: bool = False,
        rate: Rate | None = None,
        fields: str | type[Layout] = "",
        then: str = "",
        doc: str = "",
    ) -> None:
        if access not in ACCESSES:
            raise ValueError(f"{access!r} is no access of a register")
        self.offset = offset
        self.access = access
        self.reset = reset
        self.bits = bits
        self.count = count
        self.stride = stride
        self.names = names
        self.poll = poll
        self.steady = steady
        self.timed = timed
        self.rate = rate
        self.layout = None if isinstance(fields, str) else fields
        self.fields = _fields(fields)
        self.then = then
        self.doc = doc
        self.name = ""
        self.key: Any = None
        self.places: list[tuple[int, Any]] = []
        """Offsets in the block, and the keys of its `values`; `key` is the first one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Block | None, owner: type | None = None) -> int:
        if instance is None:
            return self  # type: ignore[return-value]
        return instance.values[self.key]

    def __set__(self, instance: Block, value: int) -> None:
        instance.values[self.key] = value & _WORD

    def offsets(self) -> list[int]:
        """Byte offsets of the row in the block."""
        return [self.offset + self.stride * i for i in range(self.count)]

    def name_of(self, index: int) -> str:
        """The name of one register of the row."""
        return (self.names or f"{self.name}[{{}}]").format(index) if self.count > 1 else self.name

    def single(self, index: int) -> Register:
        """One register of the row, as if it had been declared alone."""
        one = copy(self)
        one.name, one.offset, one.count = self.name_of(index), self.offsets()[index], 1
        return one

    def describe(self, value: int, name: str = "") -> str:
        """The value with its fields that are not 0, for traces and messages."""
        parts = []
        for field, high, low in self.fields:
            number = value >> low & ((1 << high - low + 1) - 1)
            if number:
                parts.append(f"{field}={number}")
        text = f"{name or self.name} = 0x{value:08x}"
        return f"{text} ({', '.join(parts)})" if parts else text


def _fields(declared: str | type[Layout]) -> tuple[tuple[str, int, int], ...]:
    """Name, highest and lowest bit of each field."""
    if isinstance(declared, str):
        return tuple(_field(field) for field in declared.split(", ")) if declared else ()
    return tuple((name, bits.hi, bits.lo) for name, bits in declared.layout_fields.items())


def _field(text: str) -> tuple[str, int, int]:
    """Return the name and the highest and lowest bit of "7:0 level" or "31 full"."""
    place, _, name = text.partition(" ")
    bits = place.split(":")
    high, low = bits[0], bits[-1]
    if not (name and high.isdecimal() and low.isdecimal() and 31 >= int(high) >= int(low)):
        raise ValueError(f"{text!r} is no field of a register")
    return name, int(high), int(low)


class Block:
    """Registers that belong together, and what they do.

    Attributes
    ----------
    values
        What is stored, by the registers' names; several blocks may share it.

    `on_read_NAME()` and `on_write_NAME(value)` are called at accesses. For a row of registers they
    get the number in the row first, or are a tuple of functions, one for each.
    """

    registers: ClassVar[dict[str, Register]] = {}
    _first_values: ClassVar[dict[Any, int]] = {}
    """Values that `reset_registers` stores, by their keys."""
    _declared: ClassVar[dict[int, tuple[str, Register]]] = {}
    """Names and registers by offset, for `register_at`; it is asked at each frame while a program polls."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Register)}
        cls.registers = {**cls.registers, **own}
        cls._declared = {}
        cls._first_values = {}
        for register in cls.registers.values():
            register.places = []
            for index, offset in enumerate(register.offsets()):
                name = register.name_of(index)
                register.places.append((offset, cls.key(name, offset)))
                cls._declared.setdefault(offset, (name, register))
            cls._first_values.update((key, register.reset) for _at, key in register.places)
            register.key = register.places[0][1]
        for name in vars(cls):
            kind, _, of = name.removeprefix("on_").partition("_")
            if name.startswith(("on_read_", "on_write_")) and of not in cls.registers:
                raise TypeError(f"{cls.__name__}.{name}: {kind} handler of an undeclared register")

    def __init__(self, values: dict[Any, int] | None = None) -> None:
        self.values: dict[Any, int] = {} if values is None else values
        self.reset_registers()

    @staticmethod
    def key(name: str, _offset: int, /) -> Any:
        """Return the key in `values` under which a register is stored."""
        return name

    def reset_registers(self) -> None:
        """Every register to its reset value."""
        self.values.update(self._first_values)

    def read_handlers(self) -> dict[int, ReadHandler]:
        """Offset in the block → function without arguments that gives the value."""
        return self._handlers("on_read_", "w", self.reader)

    def write_handlers(self) -> dict[int, WriteHandler]:
        """Offset in the block → function that takes the value."""
        return self._handlers("on_write_", "r", self._writer)

    def _handlers(
        self, prefix: str, forbidden: str, default: Callable[[Register, Any], Any]
    ) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for name, register in self.registers.items():
            handler = getattr(self, prefix + name, None)
            if handler is None and register.access == forbidden:
                continue
            for index, (offset, key) in enumerate(register.places):
                if handler is None:
                    found[offset] = default(register, key)
                elif isinstance(handler, tuple):
                    found[offset] = handler[index]
                else:
                    found[offset] = handler if register.count == 1 else partial(handler, index)
        return found

    def reader(self, _register: Register, key: Any) -> ReadHandler:
        """Return the handler that reads a register without one of its own."""
        return partial(self.values.__getitem__, key)

    def _writer(self, register: Register, key: Any) -> WriteHandler:
        write = self.writer(register, key)
        if not register.then:
            return write
        then = getattr(self, register.then)

        def write_and_then(value: int) -> None:
            write(value)
            then()

        return write_and_then

    def writer(self, register: Register, key: Any) -> WriteHandler:
        """Return the handler for writes to a register without one of its own."""
        values, bits = self.values, register.bits
        if register.access == "w1c":

            def write(value: int) -> None:
                values[key] &= ~(value & bits)

        elif register.access == "w1s":

            def write(value: int) -> None:
                values[key] |= value & bits

        elif bits == _WORD:
            return partial(values.__setitem__, key)
        else:

            def write(value: int) -> None:
                values[key] = value & bits

        return write

    def register_at(self, offset: int) -> tuple[str, Register] | None:
        """Name (with index for a row) and declaration of the register at `offset`, if any."""
        return self._declared.get(offset)
