"""The EMMC controller at P + 0x300000 (an Arasan SDHCI host) and its SD card.

A command is answered, a block is there, a block is written some microseconds after it was asked
for, each by an event; so drivers see the inhibit bits, get their interrupts, and the DMA its DREQ.
Source: BCM2835 ARM Peripherals, chapter 5; SD Host Controller Simplified Specification 3.00.
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.registers import Poll, Register
from vc4lab.soc.clock import Clock
from vc4lab.soc.devices.interrupts import EMMC, InterruptController
from vc4lab.soc.sd.sd_card import Answer, SdCard
from vc4lab.soc.sd.waiting import NONE, NOTHING, READ, WRITE, SdController

# CMDTM
COUNTS, TO_HOST, MANY = 1 << 1, 1 << 4, 1 << 5
AUTO_STOP, AUTO_COUNT = 1, 2
NO_ANSWER, LONG, SHORT, SHORT_BUSY = range(4)
IS_DATA, ABORT = 1 << 21, 3
STOP, SET_COUNT = 12, 23
# STATUS
COMMAND_INHIBIT, DATA_INHIBIT, DATA_ACTIVE = 1, 1 << 1, 1 << 2
WRITING, READING, WRITE_ROOM, READ_DATA = 1 << 8, 1 << 9, 1 << 10, 1 << 11
LINES = 0x1FFF0000
"""Card in the slot, stable, not write-protected, all lines high: with or without a card, because
the slot's switch does not lead there."""
# CONTROL1
INTERNAL_CLOCK, STABLE, CARD_CLOCK = 1, 1 << 1, 1 << 2
RESET_ALL, RESET_COMMAND, RESET_DATA = 1 << 24, 1 << 25, 1 << 26
# INTERRUPT
COMMAND_DONE, DATA_DONE, WRITE_READY, READ_READY = 1, 1 << 1, 1 << 4, 1 << 5
ANY_ERROR, NO_REPLY, BAD_END = 1 << 15, 1 << 16, 1 << 18
NO_DATA, BAD_DATA, AUTO_FAILED = 1 << 20, 1 << 21, 1 << 24
ERRORS = 0xFFFF0000
KNOWN = 0x017F71FF
COMMAND_NS, BLOCK_NS, IDLE_NS = 5_000, 25_000, 1_000_000
"""A command and its answer; 512 bytes over four lines at 25 MHz, rounded; a DMA channel's patience
while nothing is under way."""
ENDLESS = -1
"""Blocks until the program stops them."""


class Emmc(SdController):
    """The controller's registers and the transfer under way."""

    NAME = "emmc"
    OFFSET = 0x300000
    ARG2 = Register(0x00)
    BLKSIZECNT = Register(0x04, fields="31:16 count, 9:0 size")
    ARG1 = Register(0x08)
    CMDTM = Register(
        0x0C, fields="29:24 index, 23:22 type, 21 data, 17:16 answer, 5 many, 4 to host, 3:2 auto, 1 counts"
    )
    RESP = Register(0x10, count=4)
    DATA = Register(0x20, poll=Poll.DATA)
    STATUS = Register(
        0x24,
        access="r",
        poll=Poll.EVENT,
        steady=True,
        fields="0 command inhibit, 1 data inhibit, 2 active, 8 writing, 9 reading, 10 room, 11 data",
    )
    CONTROL0 = Register(0x28, fields="1 four lines, 2 high speed, 5 eight lines")
    CONTROL1 = Register(
        0x2C,
        steady=True,
        fields="0 internal clock, 1 stable, 2 card clock, 24 reset, 25 reset command, 26 reset data",
    )
    INTERRUPT = Register(
        0x30,
        access="w1c",
        poll=Poll.EVENT,
        fields="0 command done, 1 data done, 4 write ready, 5 read ready, 15 error, 16 no reply, "
        "20 no data, 21 bad data, 24 auto command failed",
        then="_update_line",
    )
    IRPT_MASK = Register(0x34, bits=KNOWN, doc="bits that INTERRUPT may show")
    IRPT_EN = Register(0x38, bits=KNOWN, then="_update_line", doc="bits of INTERRUPT that interrupt the ARM")
    CONTROL2 = Register(0x3C)
    CAPABILITIES = Register(0x40, access="r", count=2)
    FORCE_IRPT = Register(0x50, access="w")
    BOOT_TIMEOUT = Register(0x70)
    DBG_SEL = Register(0x74)
    EXRDFIFO_CFG = Register(0x80)
    EXRDFIFO_EN = Register(0x84)
    TUNE_STEP = Register(0x88)
    TUNE_STEPS = Register(0x8C, count=2)
    SPI_INT_SPT = Register(0xF0)
    SLOTISR_VER = Register(0xFC, access="r", reset=0x99020000, fields="31:24 vendor, 23:16 version")

    def __init__(
        self,
        card: SdCard,
        clock: Clock,
        interrupts: InterruptController,
        reporter: Reporter,
        is_connected: Callable[[], bool],
    ) -> None:
        super().__init__(card, clock, interrupts, reporter, is_connected)
        self._auto_stop = False

    # -- commands ----------------------------------------------------------------------------------

    def on_write_CMDTM(self, value: int) -> None:
        if self._command != NONE:
            self._wrong("a command while another is in progress (bit 0 of STATUS)")
            return
        busy = self._direction != NOTHING
        if busy and value & IS_DATA:
            self._wrong("a data command while a transfer is in progress (bit 1 of STATUS)")
            return
        self.CMDTM = value & 0x3FFB003E
        self._command = self.CMDTM
        ready = INTERNAL_CLOCK | CARD_CLOCK
        if self.CONTROL1 & ready != ready:
            self._wrong("a command while the card's clock is off (bits 0 and 2 of CONTROL1)")
            return
        self._after(COMMAND_NS)

    def _do_command(self, command: int) -> None:
        self._command = NONE
        index, kind = command >> 24 & 63, command >> 16 & 3
        has_data = bool(command & IS_DATA)
        if has_data and command >> 2 & 3 == AUTO_COUNT:
            self._send(SET_COUNT, self.ARG2)
        answer = self._send(index, self.ARG1)
        if index == STOP or command >> 22 & 3 == ABORT:
            self._end_transfer()
        if kind != NO_ANSWER and answer is None:
            self._raise(NO_REPLY)
            self._resume()
            return
        if kind != NO_ANSWER and isinstance(answer, bytes) != (kind == LONG):
            self._wrong(f"CMD{index} with the wrong response type (bits 17:16 of CMDTM)")
            self._raise(BAD_END)
            self._resume()
            return
        if isinstance(answer, bytes) and kind == LONG:
            whole = int.from_bytes(answer, "big") >> 8
            for word in range(4):
                self.values[0x10 + 4 * word] = whole >> 32 * word & 0xFFFFFFFF
        elif isinstance(answer, int) and kind != NO_ANSWER:
            self.values[0x10] = answer
        done = COMMAND_DONE
        if kind == SHORT_BUSY and not has_data:
            done |= DATA_DONE
        if has_data:
            self._begin_transfer(command)
        else:
            self._resume()
        self._raise(done)
        if self._direction == WRITE and self._ready and has_data:
            self._raise(WRITE_READY)

    def _send(self, index: int, argument: int) -> Answer:
        """The answer of what the pins lead to: the card, or nothing."""
        return self.card.command(index, argument) if self._is_connected() else None

    def _resume(self) -> None:
        """A command without data came in between: a transfer goes on."""
        if self._direction != NOTHING and not self._ready:
            self._after(BLOCK_NS)

    # -- data --------------------------------------------------------------------------------------

    def _begin_transfer(self, command: int) -> None:
        self._direction = READ if command & TO_HOST else WRITE
        self._auto_stop = command >> 2 & 3 == AUTO_STOP
        self._buffer.clear()
        self._at = 0
        self._left = 1
        if command & MANY:
            self._left = self.BLKSIZECNT >> 16 if command & COUNTS else ENDLESS
        if not self._size or not self._left:
            self._wrong("a transfer of no bytes (BLKSIZECNT)")
            self._end_transfer()
            self._raise(DATA_DONE)
            return
        self._ready = self._direction == WRITE
        if not self._ready:
            self._after(BLOCK_NS)

    @property
    def _size(self) -> int:
        """Bytes of a block, as the host has it."""
        return self.BLKSIZECNT & 0x3FF

    def _fetch(self) -> None:
        """The card sends a block."""
        block = self.card.read_block()
        if block is None:
            self._fail(NO_DATA)
            return
        if len(block) != self._size:
            self._wrong(f"blocks of {self._size} bytes (BLKSIZECNT); the card sends {len(block)}")
            self._fail(BAD_DATA)
            return
        self._buffer[:] = block
        self._at = 0
        self._ready = True
        self._raise(READ_READY)

    def _store(self) -> None:
        """The card gets a block."""
        if not self.card.write_block(bytes(self._buffer)):
            if len(self._buffer) != 512:
                self._wrong(f"blocks of {self._size} bytes (BLKSIZECNT); the card takes 512")
            self._fail(BAD_DATA)
            return
        self._buffer.clear()
        if self._block_done():
            self._ready = True
            self._raise(WRITE_READY)

    def _block_done(self) -> bool:
        """A block has gone through; whether there is another one."""
        if self._left > 0:
            self._left -= 1
            if self.CMDTM & (COUNTS | MANY) == COUNTS | MANY:
                self.BLKSIZECNT = self.BLKSIZECNT & 0xFFFF | self._left << 16
        if self._left:
            return True
        stops = self._auto_stop
        self._end_transfer()
        if stops:
            answer = self._send(STOP, 0)
            if isinstance(answer, int):
                self.values[0x1C] = answer
            else:
                self.CONTROL2 |= 1 << 1
                self._raise(AUTO_FAILED)
        self._raise(DATA_DONE)
        return False

    def _fail(self, bit: int) -> None:
        self._end_transfer()
        self._raise(bit)

    def on_read_DATA(self) -> int:
        if self._direction != READ or not self._ready:
            self._wrong("a read of DATA while it is empty (bit 11 of STATUS)")
            return 0
        at = self._at
        self._at = at + 4
        value = int.from_bytes(self._buffer[at : at + 4], "little")
        if self._at >= len(self._buffer):
            self._ready = False
            if self._block_done():
                self._after(BLOCK_NS)
        return value

    def on_write_DATA(self, value: int) -> None:
        if self._direction != WRITE or not self._ready:
            self._wrong("a write to DATA while it is full (bit 10 of STATUS)")
            return
        self._buffer += value.to_bytes(4, "little")
        if len(self._buffer) >= self._size:
            del self._buffer[self._size :]
            self._ready = False
            self._after(BLOCK_NS)

    # -- for the DMA -------------------------------------------------------------------------------

    def room(self) -> int:
        """Words that DATA gives or takes now."""
        if not self._ready:
            return 0
        end = len(self._buffer) if self._direction == READ else self._size
        done = self._at if self._direction == READ else len(self._buffer)
        return max(-(-(end - done) // 4), 0)

    def wait(self) -> int:
        """Nanoseconds until DATA may be ready."""
        return BLOCK_NS if self._direction != NOTHING else IDLE_NS

    # -- other registers ---------------------------------------------------------------------------

    def on_read_STATUS(self) -> int:
        value = LINES
        if self._command != NONE:
            value |= COMMAND_INHIBIT
            if self._command & IS_DATA or self._command >> 16 & 3 == SHORT_BUSY:
                value |= DATA_INHIBIT
        if self._direction == READ:
            value |= DATA_INHIBIT | DATA_ACTIVE | READING | (READ_DATA if self._ready else 0)
        elif self._direction == WRITE:
            value |= DATA_INHIBIT | DATA_ACTIVE | WRITING | (WRITE_ROOM if self._ready else 0)
        return value

    def on_write_CONTROL1(self, value: int) -> None:
        if value & RESET_ALL:
            self._reset()
            return
        if value & RESET_COMMAND:
            self._command = NONE
        if value & RESET_DATA:
            self._end_transfer()
        self.CONTROL1 = value & 0x000FFFE5

    def on_read_CONTROL1(self) -> int:
        return self.CONTROL1 | (STABLE if self.CONTROL1 & INTERNAL_CLOCK else 0)

    def _reset(self) -> None:
        self._command = NONE
        self._end_transfer()
        self.reset_registers()
        self._update_line()

    def _raise(self, bits: int) -> None:
        """Things have happened: they show as far as IRPT_MASK lets them."""
        if bits & COMMAND_DONE and not self.IRPT_MASK & COMMAND_DONE:
            self._wrong("a command while IRPT_MASK hides its end (bit 0 of INTERRUPT)")
        self.INTERRUPT |= bits & self.IRPT_MASK
        self._update_line()

    def _update_line(self) -> None:
        if self.INTERRUPT & ERRORS:
            self.INTERRUPT |= ANY_ERROR
        else:
            self.INTERRUPT &= ~ANY_ERROR
        level = self.INTERRUPT & self.IRPT_EN & ~ANY_ERROR
        self._interrupts.set_line(EMMC, bool(level))

    def on_write_FORCE_IRPT(self, value: int) -> None:
        self._raise(value & KNOWN & ~ANY_ERROR)
