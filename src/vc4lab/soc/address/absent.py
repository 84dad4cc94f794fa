"""Peripherals that are not modelled: their names, for messages."""

from __future__ import annotations

_BLOCKS = {
    0x208000: "DPI, the parallel display interface",
    0x209000: "DSI 0, a serial display interface",
    0x700000: "DSI 1, a serial display interface",
    0x800000: "Unicam 0, a camera interface",
    0x801000: "Unicam 1, a camera interface",
}
"""Offset of a page → name (addresses as in Linux's bcm283x.dtsi)."""


def not_modelled(page: int) -> str:
    """The block at a page of the peripheral space, in words."""
    name = _BLOCKS.get(page)
    if name is None:
        return "a peripheral that vc4lab does not model"
    return f"{name}: not modelled"
