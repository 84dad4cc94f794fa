"""An SD card as its controller sees it: commands, states, blocks of data.

An SDHC card (addresses are block numbers) that knows version 3 of the protocol, without 1.8 V
signalling. A command it does not take in its state is not answered, as the protocol has it.
Source: SD Physical Layer Simplified Specification 3.01, chapter 4 (commands, states, status) and 5
(registers).
"""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics import Reporter
from vc4lab.soc.media.sd_medium import SECTOR, UNIT, CardFile, Overlay, OverlayFull
from vc4lab.soc.sd.sd_registers import CID, SCR, csd, sd_status, switch_status

IDLE, READY, IDENT, STANDBY, TRANSFER, DATA, RECEIVE, PROGRAM, DISCONNECT, INACTIVE = range(10)
STATES = (
    "idle", "ready", "identification", "stand-by", "transfer", "sending data", "receiving data",
    "programming", "disconnect", "inactive",
)  # fmt: skip
OUT_OF_RANGE, BLOCK_LENGTH, ERASE_SEQUENCE, ERASE_PARAMETER = 1 << 31, 1 << 29, 1 << 28, 1 << 27
ILLEGAL, ECC_FAILED, ERROR = 1 << 22, 1 << 21, 1 << 19
READY_FOR_DATA, APP_COMMAND = 1 << 8, 1 << 5
RCA = 0x1234
OCR_VOLTAGES, OCR_READY, OCR_HIGH_CAPACITY = 0x00FF8000, 1 << 31, 1 << 30
TRIES = 1
"""ACMD41s with which the card still says that it is busy."""
ENDLESS = -1
VOLTAGE = 0x100

Answer = int | bytes | None
"""48 bits' content, 120 bits' content (without the CRC), or no answer."""


class SdCard:
    """The card in the slot.

    Parameters
    ----------
    slot
        What is in the slot, None if it is empty; asked at the first command.
    is_expected
        Whether a program that finds the slot empty should hear of it. Linux looks once a second.
    """

    def __init__(
        self, slot: Callable[[], Overlay | CardFile | None], reporter: Reporter, *, is_expected: bool = True
    ) -> None:
        self._slot = slot
        self._reporter = reporter
        self._is_expected = is_expected
        self._told_of_slot = False
        self._power_on()

    def _power_on(self) -> None:
        self.state = IDLE
        self.errors = 0
        """Bits of the status that the next answer shows."""
        self.app = False
        """Whether the next command is an application command."""
        self._told_voltage = False
        self._asked = 0
        self._position = 0
        self._left = 0
        self._count = 0
        """Blocks announced by CMD23 for the next transfer, 0 if none were."""
        self._announced = 0
        self._register = b""
        self._written = 0
        self._erase_first = self._erase_last = ENDLESS
        self.wide = False
        self._fast = False

    # -- commands ----------------------------------------------------------------------------------

    def command(self, index: int, argument: int) -> Answer:
        """The card's answer to a command."""
        if self._slot() is None:
            if self._is_expected and not self._told_of_slot:
                self._told_of_slot = True  # Linux looks again each second
                self._report("SOC-060", "the program accesses the SD card, but the slot is empty")
            return None
        app, self.app = self.app, False
        name = f"{'ACMD' if app and index in _APPLICATION else 'CMD'}{index}"
        row = _APPLICATION.get(index) if app else None
        row = row or _COMMANDS.get(index)
        if row is None or self.state not in row[1]:
            if index not in _PROBES:
                why = f"in the {self._state_name} state" if row else "at all"
                self._report("SOC-061", f"the SD card does not accept {name} {why}{self._advice}")
            self.errors |= ILLEGAL
            return None
        self._announced = self._count
        if index not in (12, 13, 55):
            self._count = 0
        return row[0](self, argument)

    @property
    def _state_name(self) -> str:
        return STATES[self.state] if 0 <= self.state < len(STATES) else "no"

    @property
    def _advice(self) -> str:
        if self.state in (DATA, RECEIVE):
            return ": end a transfer of several blocks with CMD12, or announce it with CMD23"
        if self.state < STANDBY:
            return ": its identification (CMD0, 8, 55, 41, 2, 3) is not complete"
        if self.state == STANDBY:
            return ": it has not been selected (CMD7)"
        return ""

    def _report(self, code: str, text: str) -> None:
        self._reporter.report(code, text, block="sd card")

    def _status(self, extra: int = 0) -> int:
        """The 32 bits of an R1 answer; reading them clears the errors."""
        value = self.errors | extra | self.state << 9
        if self.state != PROGRAM:
            value |= READY_FOR_DATA
        self.errors = 0
        return value & 0xFFFFFFFF

    def _is_meant(self, argument: int) -> bool:
        return argument >> 16 == RCA

    def _go_idle(self, _argument: int) -> Answer:
        self._power_on()
        return None

    def _interface_condition(self, argument: int) -> Answer:
        if argument & 0xF00 != VOLTAGE:
            return None
        self._told_voltage = True
        return argument & 0xFFF

    def _operating_condition(self, argument: int) -> Answer:
        if not argument & OCR_VOLTAGES:
            return OCR_VOLTAGES
        if not self._told_voltage or not argument & OCR_HIGH_CAPACITY:
            self._report(
                "SOC-061",
                "the SD card stays busy: it has more than 2 GB, so it needs CMD8 before ACMD41 "
                "and bit 30 (HCS) in the argument of ACMD41",
            )
            return OCR_VOLTAGES
        self._asked += 1
        if self._asked <= TRIES:
            return OCR_VOLTAGES
        self.state = READY
        return OCR_VOLTAGES | OCR_READY | OCR_HIGH_CAPACITY

    def _all_send_cid(self, _argument: int) -> Answer:
        self.state = IDENT
        return CID

    def _relative_address(self, _argument: int) -> Answer:
        status = self._status()
        self.state = STANDBY
        bits = status >> 23 & 1, status >> 22 & 1, status >> 19 & 1
        return RCA << 16 | bits[0] << 15 | bits[1] << 14 | bits[2] << 13 | status & 0x1FFF

    def _select(self, argument: int) -> Answer:
        if not self._is_meant(argument):
            if self.state in (TRANSFER, DATA):
                self.state = STANDBY
            return None
        status = self._status()
        self.state = TRANSFER
        return status

    def _send_csd(self, argument: int) -> Answer:
        medium = self._slot()
        return csd(medium.sectors // UNIT) if medium and self._is_meant(argument) else None

    def _inactive(self, argument: int) -> Answer:
        if self._is_meant(argument):
            self.state = INACTIVE
        return None

    def _app_command(self, argument: int) -> Answer:
        if self.state > IDENT and not self._is_meant(argument):
            return None
        self.app = True
        return self._status(APP_COMMAND)

    def _stop(self, _argument: int) -> Answer:
        status = self._status()
        self.state = TRANSFER
        self._left = 0
        self._register = b""
        return status

    def _block_count(self, argument: int) -> Answer:
        self._count = argument & 0xFFFFFFFF
        return self._status()

    def _bus_width(self, argument: int) -> Answer:
        self.wide = argument & 3 == 2
        return self._status(APP_COMMAND)

    # -- data --------------------------------------------------------------------------------------

    def _send_register(self, data: bytes, extra: int = APP_COMMAND) -> Answer:
        status = self._status(extra)
        self._register = data
        self._left = 1
        self.state = DATA
        return status

    def _switch(self, argument: int) -> Answer:
        data, fast = switch_status(argument, self._fast)
        self._fast = fast
        return self._send_register(data, 0)

    def _begin(self, argument: int, state: int, *, many: bool) -> Answer:
        medium = self._slot()
        if medium is None or argument >= medium.sectors:
            self._beyond(argument)
            return self._status(OUT_OF_RANGE)
        status = self._status()
        self._position, self._left = argument, (self._announced or ENDLESS) if many else 1
        self.state = state
        self._register = b""
        self._written = 0
        return status

    def _beyond(self, sector: int) -> None:
        medium = self._slot()
        size = medium.sectors if medium else 0
        self._report("SOC-062", f"the program accesses block {sector} of an SD card of {size} blocks")

    def read_block(self) -> bytes | None:
        """The next block the card sends; None if nothing comes."""
        medium = self._slot()
        if self.state != DATA or medium is None:
            return None
        if self._register:
            data, self._register = self._register, b""
            self._advance()
            return data
        if not 0 <= self._position < medium.sectors:
            self._beyond(self._position)
            self.errors |= OUT_OF_RANGE
            return None
        try:
            data = medium.read(self._position)
        except OSError as error:
            text = f"block {self._position} cannot be read from {medium.medium.title}"
            self._report("SOC-065", f"{text}: {error.strerror or error}")
            self.errors |= ECC_FAILED
            return None
        self._position += 1
        self._advance()
        return data

    def read_blocks(self, most: int) -> bytes | None:
        """As `read_block`, up to so many blocks that follow each other."""
        medium = self._slot()
        count = most if self._left < 0 else min(most, self._left)
        if self.state == DATA and medium is not None and not self._register:
            count = min(count, medium.sectors - self._position)
            if count > 1 and self._position >= 0:
                try:
                    data = medium.read_run(self._position, count)
                except OSError:
                    return self.read_block()  # which of them cannot be read
                self._position += count
                self._advance(count)
                return data
        return self.read_block()

    def write_block(self, data: bytes) -> bool:
        """Take a block; whether it was taken."""
        medium = self._slot()
        if self.state != RECEIVE or medium is None or len(data) != SECTOR:
            return False
        if not 0 <= self._position < medium.sectors:
            self._beyond(self._position)
            self.errors |= OUT_OF_RANGE
            return False
        try:
            medium.write(self._position, data)
        except OverlayFull:
            self._full()
            return False
        self._position += 1
        self._written += 1
        self._advance()
        return True

    def write_blocks(self, data: bytes) -> bool:
        """Take blocks that follow each other; whether all were taken."""
        places = range(0, len(data), SECTOR)
        return all(self.write_block(data[at : at + SECTOR]) for at in places)

    def _full(self) -> None:
        self._report("SOC-066", "more was written to the SD card than vc4lab keeps in memory")
        self.errors |= ERROR

    def _advance(self, blocks: int = 1) -> None:
        if self._left > 0:
            self._left = max(self._left - blocks, 0)
            if self._left == 0:
                self.state = TRANSFER

    # -- erasing -----------------------------------------------------------------------------------

    def _erase_from(self, argument: int) -> Answer:
        self._erase_first, self._erase_last = argument, ENDLESS
        return self._status()

    def _erase_to(self, argument: int) -> Answer:
        if self._erase_first < 0:
            return self._status(ERASE_SEQUENCE)
        self._erase_last = argument
        return self._status()

    def _erase(self, _argument: int) -> Answer:
        medium = self._slot()
        first, last = self._erase_first, self._erase_last
        self._erase_first = self._erase_last = ENDLESS
        if first < 0 or last < 0 or medium is None:
            return self._status(ERASE_SEQUENCE)
        if last < first or last >= medium.sectors:
            return self._status(ERASE_PARAMETER)
        try:
            medium.erase(first, last + 1)
        except OverlayFull:
            self._full()
        return self._status()


_Handler = Callable[[SdCard, int], Answer]
_SELECTED = frozenset({TRANSFER})
_ADDRESSED = frozenset({STANDBY, TRANSFER, DATA, RECEIVE, PROGRAM, DISCONNECT})
_COMMANDS: dict[int, tuple[_Handler, frozenset[int]]] = {
    0: (SdCard._go_idle, frozenset(range(INACTIVE))),
    2: (SdCard._all_send_cid, frozenset({READY})),
    3: (SdCard._relative_address, frozenset({IDENT, STANDBY})),
    6: (SdCard._switch, _SELECTED),
    7: (SdCard._select, _ADDRESSED - {RECEIVE}),
    8: (SdCard._interface_condition, frozenset({IDLE})),
    9: (SdCard._send_csd, frozenset({STANDBY})),
    10: (lambda card, at: CID if card._is_meant(at) else None, frozenset({STANDBY})),
    12: (SdCard._stop, frozenset({DATA, RECEIVE})),
    13: (lambda card, at: card._status() if card._is_meant(at) else None, _ADDRESSED),
    15: (SdCard._inactive, _ADDRESSED),
    16: (lambda card, size: card._status(BLOCK_LENGTH if size > SECTOR else 0), _SELECTED),
    17: (lambda card, at: card._begin(at, DATA, many=False), _SELECTED),
    18: (lambda card, at: card._begin(at, DATA, many=True), _SELECTED),
    23: (SdCard._block_count, _SELECTED),
    24: (lambda card, at: card._begin(at, RECEIVE, many=False), _SELECTED),
    25: (lambda card, at: card._begin(at, RECEIVE, many=True), _SELECTED),
    32: (SdCard._erase_from, _SELECTED),
    33: (SdCard._erase_to, _SELECTED),
    38: (SdCard._erase, _SELECTED),
    55: (SdCard._app_command, frozenset({IDLE}) | _ADDRESSED),
}
"""By number: what it does, and the states in which the card takes it (table 4-35)."""
_APPLICATION: dict[int, tuple[_Handler, frozenset[int]]] = {
    6: (SdCard._bus_width, _SELECTED),
    13: (lambda card, _: card._send_register(sd_status(card.wide)), _SELECTED),
    22: (lambda card, _: card._send_register(card._written.to_bytes(4, "big")), _SELECTED),
    23: (lambda card, _: card._status(APP_COMMAND), _SELECTED),
    41: (SdCard._operating_condition, frozenset({IDLE})),
    42: (lambda card, _: card._status(APP_COMMAND), _SELECTED),
    51: (lambda card, _: card._send_register(SCR), _SELECTED),
}
_PROBES = frozenset({1, 5, 52})
"""Commands of other kinds of cards: hosts send them to see whether they are answered."""
