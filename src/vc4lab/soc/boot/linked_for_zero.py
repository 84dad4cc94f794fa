"""Images that are linked for address 0 and were loaded elsewhere.

Much bare-metal code of the Pi 1's time is made for kernel_old=1, and comes without its config.txt.
Loaded to 0x8000 it begins well, as branches are relative, and then uses addresses of its own data
that are too low by the load address: it sends messages from empty memory, waits for answers that
never come, and jumps into nothing. Two things say so for sure: a message that is not where the
program says but is there in the image, and literals (constants beside the code) that lead into the
image at 0 while none leads into it where it is.
"""

from __future__ import annotations

from vc4lab.memory import MEMORY_MASK
from vc4lab.soc.boot.boot_plan import BootPlan

CURE = (
    "the image seems to be linked for address 0, but is loaded to 0x{:x}: write kernel_old=1 and "
    "disable_commandline_tags=1 into config.txt"
)
LEAST_LITERALS = 2
"""Different ones: a single number may be anything."""
LOOKED_AT = 1 << 20
"""Bytes of an image that are looked through."""
LOWEST = 0x40
"""Below are vectors, and numbers that are no addresses."""
LITERAL_32, LITERAL_32_MASK = 0x051F0000, 0x0F7F0000
"""ldr rt, [pc, #±n]"""
ADD = 1 << 23
LITERAL_64, LITERAL_64_MASK = 0x18000000, 0xBF000000
"""ldr wt or xt, label"""


class LinkedForZero:
    """Collects the signs of such an image.

    Attributes
    ----------
    is_certain
        Whether a message was found as the program means it only in the image.
    """

    def __init__(self, plan: BootPlan) -> None:
        self._plan = plan
        self.is_certain = False
        self._has_literals: bool | None = None

    @property
    def _applies(self) -> bool:
        return bool(self._plan.address) and not self._plan.cleans_caches

    def message_place(self, address: int) -> int | None:
        """The address in memory of a message that a program has at a (bus) address, if the image
        was linked for 0; None if it was not, or the address is not below the image.
        """
        physical = address & MEMORY_MASK
        plan = self._plan
        if not self._applies or physical >= min(plan.address, len(plan.image)):
            return None
        return physical + plan.address

    def found_message(self) -> str:
        """A message is there: the end of a sentence about it."""
        self.is_certain = True
        return f"; it is 0x{self._plan.address:x} bytes higher: {self.cure}"

    @property
    def cure(self) -> str:
        """Say what to do about it."""
        return CURE.format(self._plan.address)

    def about(self) -> str:
        """The end of a sentence about a program that hangs or has gone astray."""
        if not self._applies:
            return ""
        if self._has_literals is None:
            plan = self._plan
            self._has_literals = has_literals_for_zero(plan.image, plan.address, plan.wide)
        return f"; {self.cure}" if self.is_certain or self._has_literals else ""


def has_literals_for_zero(image: bytes, address: int, wide: bool) -> bool:
    """Whether an image's literals are addresses in it if it is at 0, and none if at `address`."""
    low: set[int] = set()
    end = min(len(image), LOOKED_AT) & ~3
    for at in range(0, end, 4):
        word = int.from_bytes(image[at : at + 4], "little")
        place = _literal_64(word, at) if wide else _literal_32(word, at)
        if place is None or not 0 <= place <= len(image) - 4:
            continue
        value = int.from_bytes(image[place : place + 4], "little")
        if address < value < address + len(image):
            return False
        elif LOWEST <= value < min(len(image), address) and value % 4 == 0:
            low.add(value)
    return len(low) >= LEAST_LITERALS


def _literal_32(word: int, at: int) -> int | None:
    """The address of the literal that an instruction of A32 loads."""
    if word & LITERAL_32_MASK != LITERAL_32 or word >> 28 == 0xF:
        return None
    return at + 8 + (word & 0xFFF if word & ADD else -(word & 0xFFF))


def _literal_64(word: int, at: int) -> int | None:
    if word & LITERAL_64_MASK != LITERAL_64:
        return None
    distance = word >> 5 & 0x7FFFF
    return at + 4 * (distance - (1 << 19) if distance >> 18 else distance)
