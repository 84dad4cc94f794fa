"""What lies in the peripheral space and is not modelled: its name, for who reads the message."""

from __future__ import annotations

_DISPLAY = "the picture comes from the firmware's framebuffer alone"
_BLOCKS = {
    0x004000: f"TXP, which writes the composed picture to memory; {_DISPLAY}",
    0x206000: f"pixel valve 0, a display's timing; {_DISPLAY}",
    0x207000: f"pixel valve 1, a display's timing; {_DISPLAY}",
    0x208000: "DPI, the parallel display",
    0x209000: "DSI 0, a display's serial port",
    0x700000: "DSI 1, a display's serial port",
    0x800000: "Unicam 0, a camera's port",
    0x801000: "Unicam 1, a camera's port",
    0x805000: "I2C 2, which reads what the HDMI display is",
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
        return "peripheral space where nothing is built yet"
    first, _, rest = name.partition("; ")
    return f"{first}: not modelled" + (f", {rest}" if rest else "")
