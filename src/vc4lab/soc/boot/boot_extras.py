"""Files and texts given besides the card, as by QEMU's -append, -initrd, -dtb and loader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from vc4lab.files import read_up_to
from vc4lab.ranges import ADDRESS
from vc4lab.soc.boot.boot_plan import HostFile
from vc4lab.soc.boot.config_txt import Config
from vc4lab.soc.media.card import Card

LONGEST_COMMAND_LINE = 1024
RAMDISK, DEVICE_TREE = "/initrd", "/dtb"
"""Names under which `CardWithExtras` has them."""


@dataclass(frozen=True)
class BootExtras:
    """Each goes before what the card has.

    Attributes
    ----------
    command_line
        Instead of cmdline.txt.
    ramdisk, device_tree
        Files of the host: instead of config.txt's initramfs and device_tree.
    address
        Where the kernel is loaded to; its first instruction is there.

    Raises
    ------
    ValueError
        A command line longer than the firmware reads, an address without an instruction.
    """

    command_line: str | None = None
    ramdisk: Path | None = None
    device_tree: Path | None = None
    address: int | None = None

    def __post_init__(self) -> None:
        line = self.command_line
        if line is not None and len(line.encode("utf-8", "replace")) > LONGEST_COMMAND_LINE:
            text = f"the command line has more than {LONGEST_COMMAND_LINE} bytes"
            raise ValueError(f"{text}, the firmware's limit")
        address = ADDRESS.check_optional(self.address)
        if address is not None and address % 4:
            raise ValueError(f"address 0x{address:x} is not a multiple of 4")

    def apply(self, config: Config) -> None:
        """Change what config.txt says."""
        if self.command_line is not None:
            config.command_line = self.command_line
        if self.ramdisk is not None:
            config.ramdisk = RAMDISK, None
        if self.device_tree is not None:
            config.values["device_tree"] = DEVICE_TREE
        if self.address is not None:
            config.values["kernel_address"] = str(self.address)
            config.values["kernel_old"] = "0"

    def files(self) -> dict[str, Path]:
        """The host's files by name."""
        pairs = {RAMDISK: self.ramdisk, DEVICE_TREE: self.device_tree}
        return {name: path for name, path in pairs.items() if path is not None}


class CardWithExtras:
    """A card with a few files of the host on top."""

    def __init__(self, card: Card, files: dict[str, Path]) -> None:
        self.title = card.title
        self._card = card
        self._files = files

    def has(self, name: str) -> bool:
        """Whether this name is one of the host's files."""
        return name in self._files

    def find(self, name: str) -> str | None:
        path = self._files.get(name)
        return self._card.find(name) if path is None else path.name

    def size(self, name: str) -> int:
        path = self._files.get(name)
        return self._card.size(name) if path is None else path.stat().st_size

    def read(self, name: str, limit: int) -> bytes:
        path = self._files.get(name)
        if path is None:
            return self._card.read(name, limit)
        with path.open("rb") as file:
            return read_up_to(file, limit)

    def open(self, name: str) -> HostFile:
        """One of the host's files, for a piece of memory. Raises OSError, KeyError."""
        return HostFile(self._files[name])


def is_extra(card: Card, name: str) -> TypeGuard[CardWithExtras]:
    """Whether a file was given beside the card: one that cannot be used is an error then."""
    return isinstance(card, CardWithExtras) and card.has(name)
