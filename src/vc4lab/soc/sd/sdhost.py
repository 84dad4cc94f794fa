"""SDHOST at P + 0x202000: the chip's second SD controller, a FIFO of 16 words with a DREQ.

No manual has it; registers, bits and states are those that Linux's driver uses
(drivers/mmc/host/bcm2835.c). A command and each block take the time of the card's clock. Between
the FIFO and the card there is no limit here: a program that polls sees 16 words at most, the DMA
gets many blocks at once, at the moment at which the last of them would have come.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.clock import NANOSECONDS, Clock
from vc4lab.soc.devices.interrupts import SDHOST, InterruptController
from vc4lab.soc.media.sd_medium import SECTOR
from vc4lab.soc.sd.sd_card import SdCard
from vc4lab.soc.sd.waiting import NONE, NOTHING, READ, WRITE, SdController

# SDCMD
NEW, FAILED, BUSY_WAIT, NO_ANSWER, LONG = 1 << 15, 1 << 14, 1 << 11, 1 << 10, 1 << 9
TO_CARD, FROM_CARD, INDEX = 1 << 7, 1 << 6, 0x3F
# SDHSTS
BUSY_DONE, BLOCK_DONE = 1 << 10, 1 << 9
DATA_TIMEOUT, COMMAND_TIMEOUT, BAD_DATA, BAD_ANSWER, FIFO_ERROR = (
    1 << 7, 1 << 6, 1 << 5, 1 << 4, 1 << 3
)  # fmt: skip
DATA_READY = 1
CLEARED = 0x7F8
# SDHCFG
BUSY_ENABLE, BLOCK_ENABLE, DATA_ENABLE, SLOW_CARD, FOUR_LINES = (
    1 << 10, 1 << 8, 1 << 4, 1 << 3, 1 << 2
)  # fmt: skip
# SDEDM
FORCE_DATA_MODE = 1 << 19
THRESHOLDS = 0x7FE00
IDENTIFICATION, DATA_MODE, READ_DATA, WRITE_DATA, READ_WAIT = range(5)
"""States of the controller; READ_WAIT: the FIFO is full."""
FIFO_WORDS = 16
STOP = 12
COMMAND_NS, IDLE_NS = 5_000, 1_000_000
"""A command and its answer; a DMA channel's patience while nothing is under way."""
OVERHEAD_CLOCKS = 40
"""Start bit, checksum and end bit of a block, and the pause after it."""
MOST = 128
"""Blocks that the DMA moves at once."""


class SdHost(SdController):
    """The controller's registers, and what its transfers are.

    Parameters
    ----------
    core_clock
        Gives the frequency that SDCDIV divides.
    """

    NAME = "sdhost"
    OFFSET = 0x202000
    SDCMD = Register(
        0x00,
        poll=Poll.EVENT,
        steady=True,
        fields="15 new, 14 failed, 11 busy, 10 no answer, 9 long, 7 to card, 6 from card, 5:0 index",
    )
    SDARG = Register(0x04)
    SDTOUT = Register(0x08)
    SDCDIV = Register(0x0C, bits=0x7FF, reset=0x1FB, doc="clocks of the core per clock, less 2")
    SDRSP = Register(0x10, access="r", count=4)
    SDHSTS = Register(
        0x20,
        access="w1c",
        bits=CLEARED,
        poll=Poll.EVENT,
        fields="10 busy done, 9 block done, 8 sdio, 7 data timeout, 6 command timeout, 5 bad data, "
        "4 bad answer, 3 fifo error, 0 data",
        then="_update_line",
    )
    SDVDD = Register(0x30, bits=1)
    SDEDM = Register(
        0x34,
        poll=Poll.EVENT,
        fields="3:0 state, 8:4 words, 13:9 write threshold, 18:14 read threshold, 19 data mode",
    )
    SDHCFG = Register(
        0x38,
        bits=0x7FF,
        fields="10 busy, 8 block, 5 sdio, 4 data, 3 slow card, 2 four lines, 1 wide",
        then="_update_line",
    )
    SDHBCT = Register(0x3C, fields="10:0 bytes of a block")
    FIFO = 0x40
    SDDATA = Register(FIFO, poll=Poll.DATA)
    SDHBLC = Register(0x50, bits=0xFFFF, fields="15:0 blocks")

    def __init__(
        self,
        card: SdCard,
        clock: Clock,
        interrupts: InterruptController,
        reporter: Reporter,
        is_connected: Callable[[], bool],
        core_clock: Callable[[], float],
    ) -> None:
        super().__init__(card, clock, interrupts, reporter, is_connected)
        self._core_clock = core_clock
        self._dma = False
        """Whether the DMA has waited for this transfer: blocks come many at a time."""

    # -- commands ----------------------------------------------------------------------------------

    def on_write_SDCMD(self, value: int) -> None:
        if self._command != NONE:
            self._wrong("a command while another is in progress (bit 15 of SDCMD)")
            return
        self.SDCMD = value & 0xFFFF & ~FAILED
        if not value & NEW:
            return
        if value & (TO_CARD | FROM_CARD) and self._direction != NOTHING:
            self._wrong("a data command while a transfer is in progress (bits 3:0 of SDEDM)")
            self._end_transfer()
        self._command = self.SDCMD
        self._after(COMMAND_NS)

    def _do_command(self, command: int) -> None:
        self._command = NONE
        self.SDCMD &= ~NEW
        index = command & INDEX
        answer = self.card.command(index, self.SDARG) if self._powered else None
        if index == STOP:
            self._end_transfer()
        if not command & NO_ANSWER and answer is None:
            self._fail(COMMAND_TIMEOUT)
        elif not command & NO_ANSWER and isinstance(answer, bytes) != bool(command & LONG):
            self._wrong(f"CMD{index} with the wrong length of its answer (bit 9 of SDCMD)")
            self._fail(BAD_ANSWER)
        else:
            self._keep_answer(answer)
            if command & (TO_CARD | FROM_CARD):
                self._begin_transfer(command)
        if command & BUSY_WAIT:
            self._raise(BUSY_DONE, BUSY_ENABLE)
        if self._direction != NOTHING and not self._ready and self._event is None:
            self._after(self._block_ns)

    @property
    def _powered(self) -> bool:
        return bool(self.SDVDD & 1) and self._is_connected()

    def _fail(self, bit: int) -> None:
        self.SDCMD |= FAILED
        self.SDHSTS |= bit

    def _keep_answer(self, answer: int | bytes | None) -> None:
        if isinstance(answer, bytes):
            whole = int.from_bytes(answer, "big")
            for word in range(4):
                self.values[0x10 + 4 * word] = whole >> 32 * word & 0xFFFFFFFF
        elif answer is not None:
            self.values[0x10] = answer

    # -- data --------------------------------------------------------------------------------------

    @property
    def _size(self) -> int:
        """Bytes of a block."""
        return self.SDHBCT & 0x7FF

    @property
    def _block_ns(self) -> int:
        """A block's time on the lines, by the clock that SDCDIV makes."""
        divider = self.SDCDIV if self.SDHCFG & SLOW_CARD else self.SDCDIV & 7
        lines = 4 if self.SDHCFG & FOUR_LINES else 1
        clocks = 8 * self._size // lines + OVERHEAD_CLOCKS
        return int(clocks * (divider + 2) * NANOSECONDS / max(self._core_clock(), 1e6))

    def _begin_transfer(self, command: int) -> None:
        self._direction = READ if command & FROM_CARD else WRITE
        self._buffer.clear()
        self._at = 0
        self._left = max(self.SDHBLC, 1)
        if not self._size:
            self._wrong("a transfer of no bytes (SDHBCT)")
            self._end_transfer()
            return
        self._ready = self._direction == WRITE
        if self._ready:
            self._update_line()

    def _fetch(self) -> None:
        """The card has sent a block, or for the DMA some of them."""
        data = self.card.read_blocks(min(self._left, MOST) if self._dma else 1)
        if data is None:
            self._end_transfer()
            self.SDHSTS |= DATA_TIMEOUT
            return
        if len(data) % self._size:
            self._wrong(f"blocks of {self._size} bytes (SDHBCT); the card sends {len(data)}")
            self._end_transfer()
            self.SDHSTS |= BAD_DATA
            return
        self._buffer[:] = data
        self._at = 0
        self._ready = True
        self._update_line()

    def take(self, count: int) -> bytes:
        """So many bytes that the card has sent."""
        if self._direction != READ or not self._ready:
            self._wrong("a read of SDDATA while the FIFO is empty (bits 8:4 of SDEDM)")
            return bytes(count)
        data = bytes(self._buffer[self._at : self._at + count])
        self._at += count
        if self._at >= len(self._buffer):
            self._ready = False
            self._count_blocks(len(self._buffer) // self._size)
            if self._direction == READ:
                self._after(self._block_ns * (min(self._left, MOST) if self._dma else 1))
            self._update_line()
        return data.ljust(count, b"\0")

    def give(self, data: bytes) -> None:
        """Bytes for the card."""
        if self._direction != WRITE or not self._ready:
            self._wrong("a write to SDDATA while the FIFO takes none (bits 8:4 of SDEDM)")
            return
        self._buffer += data
        blocks = len(self._buffer) // self._size
        if not blocks:
            return
        blocks = min(blocks, self._left)
        if self._size == SECTOR:
            written = self.card.write_blocks(bytes(self._buffer[: blocks * SECTOR]))
        else:
            self._wrong(f"blocks of {self._size} bytes (SDHBCT); the card takes {SECTOR}")
            written = False
        del self._buffer[: blocks * self._size]
        if not written:
            self._end_transfer()
            self.SDHSTS |= BAD_DATA
            self._update_line()
            return
        self._ready = False
        self._left -= blocks
        self.SDHBLC = self._left
        self._update_line()
        self._after(self._block_ns * blocks)

    def _store(self) -> None:
        """Go on after the given block has come to the card."""
        if self._left:
            self._ready = True
        else:
            self._end_transfer()
        self._raise(BLOCK_DONE, BLOCK_ENABLE)

    def _count_blocks(self, blocks: int) -> None:
        self._left = max(self._left - blocks, 0)
        self.SDHBLC = self._left
        if not self._left:
            self._end_transfer()
        self._raise(BLOCK_DONE, BLOCK_ENABLE)

    def _end_transfer(self) -> None:
        self._dma = False
        super()._end_transfer()
        self._update_line()

    def on_read_SDDATA(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def on_write_SDDATA(self, value: int) -> None:
        self.give(value.to_bytes(4, "little"))

    # -- for the DMA -------------------------------------------------------------------------------

    def room(self) -> int:
        """Words that SDDATA gives or takes now."""
        if not self._ready:
            return 0
        if self._direction == READ:
            return -(-(len(self._buffer) - self._at) // 4)
        return -(-(min(self._left, MOST) * self._size - len(self._buffer)) // 4)

    def wait(self) -> int:
        """Nanoseconds until SDDATA may be ready. The blocks that the DMA waits for come at once."""
        if self._direction == NOTHING:
            return COMMAND_NS if self._command != NONE else IDLE_NS
        if self._direction == READ and not self._dma and self._command == NONE:
            self._dma = True
            self._after(self._block_ns * min(self._left, MOST))
        if self._event is None or self._event.cancelled:
            return IDLE_NS
        return max(self._event.at - self._clock.now, 0)

    # -- other registers ---------------------------------------------------------------------------

    @property
    def _data_ready(self) -> bool:
        return self._ready and self._direction != NOTHING

    def on_read_SDHSTS(self) -> int:
        return self.SDHSTS & CLEARED | (DATA_READY if self._data_ready else 0)

    def on_read_SDEDM(self) -> int:
        words, state = 0, DATA_MODE
        if self._direction == READ:
            words = min(self.room(), FIFO_WORDS)
            state = READ_WAIT if words == FIFO_WORDS else READ_DATA
        elif self._direction == WRITE:
            words, state = (0 if self._ready else FIFO_WORDS), WRITE_DATA
        return self.SDEDM & THRESHOLDS | words << 4 | state

    def on_write_SDEDM(self, value: int) -> None:
        self.SDEDM = value & THRESHOLDS
        if value & FORCE_DATA_MODE and self._direction != NOTHING:
            self._end_transfer()

    def _raise(self, bit: int, enable: int) -> None:
        """Something has happened; it shows if its interrupt is enabled."""
        if self.SDHCFG & enable:
            self.SDHSTS |= bit
        self._update_line()

    def _update_line(self) -> None:
        level = bool(self.SDHSTS & (BUSY_DONE | BLOCK_DONE))
        level |= self._data_ready and bool(self.SDHCFG & DATA_ENABLE)
        self._interrupts.set_line(SDHOST, level)
