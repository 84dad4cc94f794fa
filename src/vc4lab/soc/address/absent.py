"""Peripherals that are not modelled: their names, for messages."""

from __future__ import annotations

_DISPLAY = "vc4lab shows the firmware's framebuffer only"
_BLOCKS = {
    0x004000: f"TXP, which writes the composed picture to memory; {_DISPLAY}",
    0x206000: f"pixel valve 0, a display's timing; {_DISPLAY}",
    0x207000: f"pixel valve 1, a display's timing; {_DISPLAY}",
    0x208000: "DPI, the parallel display interface",
    0x209000: "DSI 0, a serial display interface",
    0x700000: "DSI 1, a serial display interface",
    0x800000: "Unicam 0, a camera interface",
    0x801000: "Unicam 1, a camera interface",
    0x805000: "I2C 2, which identifies the HDMI display",
    0x806000: "VEC, the analogue video encoder",
    0x807000: f"pixel valve 2, a display's timing; {_DISPLAY}",
    0x808000: f"HDMI controller's HD registers; {_DISPLAY}",
    0x902000: f"HDMI controller; {_DISPLAY}",
}
"""Offset of a page → name (addresses as in Linux's bcm283x.dtsi)."""
_HVS = range(0x400000, 0x406000)
_HVS_NAME = f"HVS, which composes and scales the picture; {_DISPLAY}"


def not_modelled(page: int) -> str:
    """The block at a page of the peripheral space, in words."""
    name = _HVS_NAME if page in _HVS else _BLOCKS.get(page)
    if name is None:
        return "a peripheral that vc4lab does not model"
    first, _, rest = name.partition("; ")
    return f"{first}: not modelled" + (f", {rest}" if rest else "")
