"""Messages about a screen that stays black."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_MAILBOX = "Raspberry Pi firmware wiki, mailbox property interface"

ENTRIES = [
    Entry(
        "SOC-140",
        "The framebuffer is never written",
        "The program has a framebuffer, which the firmware has cleared to black, and the run ends without a "
        "write there by the CPU, the DMA or the V3D; or it has set sizes, and never asked for the memory. "
        "Either the program has not come to its drawing, or it draws to another address.",
        _MAILBOX + ", allocate buffer (0x00040001)",
        "Write to the address in the message: bits 29:0 of what the firmware answers. Read it from the "
        "message after the reply, at its own place: the first word of the tag's value. From C the pointer "
        "to it is volatile.",
        Severity.HINT,
    ),
    Entry(
        "SOC-141",
        "The picture is not where the display looks",
        "Frames are complete, but in memory that the display does not show: another buffer, another page of "
        "the framebuffer, or no framebuffer at all.",
        "AG100-R p. 72, record 113; " + _MAILBOX + ", set virtual offset (0x00048009)",
        "Put the framebuffer's address into record 113, or show the page that was drawn (tag 0x00048009).",
        Severity.HINT,
    ),
    Entry(
        "SOC-142",
        "The V3D draws nothing",
        "The V3D has power, but no frame was drawn: a binning list (CT0CA, then CT0EA) and a rendering list "
        "(CT1CA, then CT1EA) have to be started, and the write of the end address starts them, if it is "
        "another one than the beginning.",
        "AG100-R p. 86, registers CTnCA and CTnEA",
        "Write CT0CA and CT0EA, wait for BFC, then CT1CA and CT1EA, wait for RFC.",
        Severity.HINT,
    ),
    Entry(
        "SOC-143",
        "The framebuffer is written before it is there",
        "What was drawn at the framebuffer's place before it was allocated is gone: the firmware clears it, "
        "and may place it elsewhere next time.",
        _MAILBOX + ", allocate buffer (0x00040001)",
        "Ask for the framebuffer first, wait for the reply, and draw to the address that it has.",
        Severity.HINT,
    ),
    Entry(
        "SOC-144",
        "The display shows black",
        "There is a picture, but the display is switched off, or shows each of its colours as black: with 8 "
        "bits a pixel or less, pixels are numbers of a palette that is black until the program sets it.",
        _MAILBOX + ", blank screen (0x00040002), set palette (0x0004800B)",
        "Set the palette, or ask for 16 or 32 bits a pixel (tag 0x00048005); switch the display on.",
        Severity.HINT,
    ),
    Entry(
        "SOC-145",
        "The V3D overwrites the program",
        "A frame is stored over the exception vectors or the kernel itself: the address in record 113 was "
        "not filled in, or is that of something else. What the program does after that is undefined.",
        "AG100-R p. 72, record 113",
        "Put the framebuffer's address into record 113: what the firmware answers to tag 0x00040001.",
    ),
]
