"""An input device: its abilities, the state of its keys, and its open files."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from vc4lab.drm.processes.descriptors import OpenedSocket
from vc4lab.drm.uapi import evdev as e

Change = tuple[int, int, int]
"""Type, code, value."""
BUS_VIRTUAL = 6
MAJOR, FIRST_MINOR = 13, 64
REPEAT_DELAY, REPEAT_PERIOD = 250, 33
"""Milliseconds, as the kernel's."""
RELEASED, PRESSED, REPEATED = range(3)
_RETRY_SECONDS = 0.02
"""So often a program that did not read is looked at again."""
_LOST = [(e.EV_SYN, e.SYN_DROPPED, 0), e.REPORT]
_MAX_WRITTEN = 24 * 64


@dataclass
class Axis:
    """An absolute axis: its place and limits."""

    value: int
    minimum: int
    maximum: int
    fuzz: int = 0
    flat: int = 0
    resolution: int = 0


@dataclass(eq=False)
class EvdevDevice:
    """A device under one /dev/input/eventN. Used in the supervisor's thread only."""

    number: int
    name: str
    codes: dict[int, frozenset[int]]
    """By type of event."""
    udev: tuple[str, ...]
    """Properties that udev's rules find out: ID_INPUT and its relatives."""
    axes: dict[int, Axis] = field(default_factory=dict)
    identity: tuple[int, int, int, int] = (BUS_VIRTUAL, 0, 0, 1)
    state: dict[int, set[int]] = field(default_factory=dict)
    """Codes that are on: keys that are held, lights that burn."""
    repeat: list[int] = field(default_factory=lambda: [REPEAT_DELAY, REPEAT_PERIOD])
    repeat_at: float | None = None
    repeated: int = 0
    """The key that repeats."""
    files: list[EvdevFile] = field(default_factory=list)
    grab: EvdevFile | None = None

    @property
    def node(self) -> str:
        return f"event{self.number}"

    @property
    def numbers(self) -> tuple[int, int]:
        """Major and minor of the node."""
        return MAJOR, FIRST_MINOR + self.number

    @property
    def place(self) -> str:
        """PHYS of the device."""
        return f"vc4lab/input{self.number}"

    def bits(self, kind: int) -> bytes:
        """The codes that it can send of a type; of EV_SYN: its types."""
        numbers = self.codes if kind == e.EV_SYN else self.codes.get(kind, frozenset())
        return bit_set(numbers, e.CODES[kind])

    def states(self, kind: int) -> bytes:
        """Which codes of a type are on."""
        return bit_set(self.state.get(kind, ()), e.CODES[kind])

    # -- events ------------------------------------------------------------------------------------

    def send(self, changes: Iterable[Change], moment: int) -> None:
        """Changes that happen together, at `moment` (nanoseconds of the monotonic clock).

        As in the kernel, what the device cannot do and what changes nothing is left out.
        """
        happened = [change for change in changes if self._takes(change, moment)]
        if happened:
            for file in [self.grab] if self.grab is not None else self.files:
                file.deliver(happened, moment)

    def _takes(self, change: Change, moment: int) -> bool:
        kind, code, value = change
        if kind == e.EV_SYN or code not in self.codes.get(kind, ()):
            return False
        if kind == e.EV_KEY and value == REPEATED:
            return True
        if kind in (e.EV_KEY, e.EV_LED):
            state = self.state.setdefault(kind, set())
            if (code in state) == bool(value):
                return False
            (state.add if value else state.discard)(code)
            if kind == e.EV_KEY:
                self._plan_repeat(code, bool(value), moment)
        elif kind == e.EV_ABS:
            axis = self.axes[code]
            if axis.value == value:
                return False
            axis.value = value
        elif kind == e.EV_REP:
            if self.repeat[code] == value:
                return False
            self.repeat[code] = max(0, value)
        return kind != e.EV_REL or value != 0

    def _plan_repeat(self, code: int, pressed: bool, moment: int) -> None:
        if e.EV_REP not in self.codes:
            return
        if pressed and self.repeat[e.REP_DELAY] and self.repeat[e.REP_PERIOD]:
            self.repeated = code
            self.repeat_at = moment / 1e9 + self.repeat[e.REP_DELAY] / 1e3
        elif code == self.repeated or pressed:
            self.repeat_at = None

    def tick(self, now: float) -> None:
        """A key that is held comes again."""
        if self.repeat_at is not None and now >= self.repeat_at:
            period = self.repeat[e.REP_PERIOD] / 1e3
            self.send([(e.EV_KEY, self.repeated, REPEATED)], int(now * 1e9))
            missed = (now - self.repeat_at) // period if period else 0.0
            self.repeat_at = self.repeat_at + (missed + 1) * period if period else None


class EvdevFile(OpenedSocket):
    """An open file, as one open() of an input node made it.

    A program's descriptor is the other end of a socket: reading, O_NONBLOCK, poll, epoll and
    passing it on are the kernel's work, at its speed. Only ioctl and fstat come to the supervisor.

    Two things differ from a real device. What waits to be read is not taken back when a program
    asks for the state of all keys. And a revoked file reads as ended (0 bytes), not as ENODEV.
    """

    def __init__(self, device: EvdevDevice, process: int, program: str) -> None:
        self.device = device
        self.process = process
        self.program = program
        self.clock = 0
        self.masks: dict[int, bytes] = {}
        """Which codes of a type the program has selected, if it has."""
        self.is_revoked = False
        self.retry_at: float | None = None
        """Events were lost: when to try to say so."""
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        device.files.append(self)

    def __str__(self) -> str:
        return f"{self.program}[{self.process}] {self.device.node}"

    @property
    def watched(self) -> int:
        """Readable when the program wrote, or when its last descriptor is gone."""
        return self._ours.fileno()

    def take_end(self) -> int:
        """The program's end; the caller closes it."""
        return self._theirs.detach()

    def close(self) -> None:
        """The last descriptor is gone."""
        if self in self.device.files:
            self.device.files.remove(self)
        if self.device.grab is self:
            self.device.grab = None
        self._ours.close()
        self._theirs.close()

    def revoke(self) -> None:
        """No more events; the descriptor stays."""
        self.is_revoked = True
        self.device.files.remove(self)
        if self.device.grab is self:
            self.device.grab = None
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)

    # -- to the program ----------------------------------------------------------------------------

    def deliver(self, changes: Sequence[Change], moment: int) -> None:
        """Changes that happened together, ended by a report, if the program has selected any."""
        wanted = [change for change in changes if self._wants(change[0], change[1])]
        if wanted:
            self._send([*wanted, e.REPORT], moment)

    def retry(self, now: float) -> None:
        """Say that events were lost, as soon as there is room."""
        if self.retry_at is not None and now >= self.retry_at:
            self._send([], int(now * 1e9))

    def _send(self, events: list[Change], moment: int) -> None:
        if self.retry_at is not None:
            events = [*_LOST, *events]
        in_its_clock = moment - time.monotonic_ns() + time.clock_gettime_ns(self.clock)
        seconds, nanoseconds = divmod(in_its_clock, 10**9)
        data = b"".join(
            e.EVENT.pack(
                e.EVENT.make(sec=seconds, usec=nanoseconds // 1000, type=kind, code=code, value=value)
            )
            for kind, code, value in events
        )
        try:
            # all or nothing: the kernel takes one small message of a stream whole
            self._ours.send(data, socket.MSG_NOSIGNAL)
            self.retry_at = None
        except BlockingIOError:
            self.retry_at = time.monotonic() + _RETRY_SECONDS
        except OSError:
            self.retry_at = None  # the program's end is closed

    def _wants(self, kind: int, code: int) -> bool:
        types = self.masks.get(e.EV_SYN)
        if types is not None and not _has(types, kind):
            return False
        codes = self.masks.get(kind)
        return codes is None or code >= e.CODES.get(kind, 0) or _has(codes, code)

    # -- from the program --------------------------------------------------------------------------

    def take_written(self) -> list[Change] | None:
        """Take what the program wrote: lights, mostly. None when its last descriptor is gone."""
        try:
            data = self._ours.recv(_MAX_WRITTEN)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        whole = len(data) // e.EVENT.size * e.EVENT.size
        events = e.EVENT.parse_all(data[:whole])
        return [(event.type, event.code, event.value) for event in events]


def _has(mask: bytes, number: int) -> bool:
    return number >> 3 < len(mask) and bool(mask[number >> 3] >> (number & 7) & 1)


def bit_set(numbers: Iterable[int], count: int) -> bytes:
    """A bit for each number, in whole words of the kernel (8 bytes)."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask.to_bytes(-(-count // 64) * 8, "little")


def make_keyboard() -> EvdevDevice:
    """A keyboard with every key that has a code below the buttons'."""
    return EvdevDevice(
        0,
        "vc4lab keyboard",
        {
            e.EV_SYN: frozenset((e.SYN_REPORT, e.SYN_DROPPED)),
            e.EV_KEY: frozenset(range(1, 249)),
            e.EV_LED: frozenset(range(3)),
            e.EV_REP: frozenset((e.REP_DELAY, e.REP_PERIOD)),
        },
        ("ID_INPUT=1", "ID_INPUT_KEY=1", "ID_INPUT_KEYBOARD=1"),
        identity=(BUS_VIRTUAL, 0x7663, 1, 1),
    )


def make_pointer(size: tuple[int, int] | None = None) -> EvdevDevice:
    """A mouse with a wheel; with a `size` it says places on a screen of so many pixels."""
    codes = {
        e.EV_SYN: frozenset((e.SYN_REPORT, e.SYN_DROPPED)),
        e.EV_KEY: frozenset(range(e.BTN_LEFT, e.BTN_TASK + 1)),
        e.EV_REL: frozenset((e.REL_WHEEL, e.REL_WHEEL_HI_RES)),
    }
    axes = {}
    if size is None:
        codes[e.EV_REL] |= {e.REL_X, e.REL_Y}
    else:
        codes[e.EV_ABS] = frozenset((e.ABS_X, e.ABS_Y))
        axes = {axis: Axis(0, 0, max(1, size[axis] - 1)) for axis in (e.ABS_X, e.ABS_Y)}
    return EvdevDevice(
        1, "vc4lab pointer", codes, ("ID_INPUT=1", "ID_INPUT_MOUSE=1"), axes,
        identity=(BUS_VIRTUAL, 0x7663, 2, 1),
    )  # fmt: skip
