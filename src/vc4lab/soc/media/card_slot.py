"""The SD card slot: which card is in it, and what the program has written to it.

The card is what the machine boots from (a folder, a card image), or another one that the user puts
in; a bare kernel image alone leaves the slot empty. It is opened when the program first asks.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from vc4lab.diagnostics import Reporter
from vc4lab.soc.media.fat import looks_like_card
from vc4lab.soc.media.sd_medium import CardFile, ImageFile, Medium, Overlay


class CardSlot:
    """Called, it gives the card with the writes kept in memory; None if there is no card.

    Parameters
    ----------
    boot
        What the machine boots from.
    card
        The card to put in instead, a folder or an image.

    Raises
    ------
    OSError
        There is no such card.
    """

    def __init__(
        self, boot: str | os.PathLike[str], card: str | os.PathLike[str] | None, reporter: Reporter
    ) -> None:
        self._reporter = reporter
        self._card: Overlay | CardFile | None = None
        self._opened = False
        path = Path(boot if card is None else card)
        mode = path.stat().st_mode
        self.path: Path | None = path
        """The folder or image, None if the slot is empty."""
        self.image: Path | None = None
        """The image file, if the card is one."""
        if stat.S_ISDIR(mode):
            return
        if not stat.S_ISREG(mode):
            raise OSError(22, "is neither a folder nor a file")
        if card is None and not looks_like_card(path):
            self.path = None
        else:
            self.image = path

    def exchange(self, card: Overlay | CardFile | None) -> Overlay | CardFile | None:
        """Put another card in, None: none; the one that was in the slot."""
        before = self()
        self._card = card
        return before

    def __call__(self) -> Overlay | CardFile | None:
        """The card, opened when it is first wanted."""
        if not self._opened:
            self._opened = True
            self._card = self._open()
        return self._card

    @property
    def changed(self) -> bool:
        """Whether the program has written to the card."""
        return self._card is not None and self._card.changed

    def _open(self) -> Overlay | None:
        if self.path is None:
            return None
        medium: Medium
        try:
            if self.image is not None:
                medium = ImageFile(self.image)
            else:
                from vc4lab.soc.media.fat_volume import FolderVolume

                medium = FolderVolume(self.path, self._left_out)
        except OSError as error:
            text = f"{self.path} cannot serve as the SD card: {error.strerror or error}"
            self._reporter.report("SOC-065", text, block="sd card")
            return None
        return Overlay(medium)

    def _left_out(self, text: str) -> None:
        self._reporter.report("SOC-067", text, block="sd card")

    def save(self) -> int:
        """Write what the program has written into the image file; sectors. Raises OSError."""
        if self.image is None or self._card is None:
            return 0
        return self._card.save_to(self.image)
