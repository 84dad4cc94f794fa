"""Property tags about the board: versions, memory, GPIO expander, OTP, EDID."""

from __future__ import annotations

import struct

from vc4lab.soc.board import SERIAL_NUMBER
from vc4lab.soc.videocore.edid import SIZE
from vc4lab.soc.videocore.properties import tag
from vc4lab.soc.videocore.vc_memory import FLAG_ZERO
from vc4lab.soc.videocore.videocore import (
    EXPANDER_PINS,
    FIRMWARE_REVISION,
    FIRST_EXPANDER_PIN,
    MAC,
    OTP_WORDS,
    VideoCore,
)

ARM_DMA_CHANNELS = 0x7F35


tag(0x00000001, "firmware revision", "", "u32 revision")(lambda vc: FIRMWARE_REVISION)
tag(0x00010001, "board model", "", "u32 model")(lambda vc: 0)
tag(0x00010002, "board revision", "", "u32 revision")(lambda vc: vc.board.revision)
tag(0x00010003, "MAC address", "", "bytes address")(lambda vc: MAC)
tag(0x00010004, "board serial number", "", "u64 serial")(lambda vc: SERIAL_NUMBER)
tag(0x00010005, "ARM memory", "", "u32 base, u32 size")(lambda vc: (0, vc.arm_memory))
tag(0x00010006, "VideoCore memory", "", "u32 base, u32 size")(lambda vc: (vc.arm_memory, vc.vc_memory))
tag(0x00010007, "clocks", "", "bytes pairs")(
    lambda vc: b"".join(bytes(4) + number.to_bytes(4, "little") for number in vc.clock_rates)
)
tag(0x00050001, "command line", "", "bytes text")(
    lambda vc: vc.config.command_line.encode("ascii", "replace") + b"\0"
)
tag(0x00060001, "DMA channels", "", "u32 mask")(lambda vc: ARM_DMA_CHANNELS)
tag(0x0003000B, "system timer", "", "u64 microseconds")(lambda vc: vc.clock.now // 1000)
tag(0x00030048, "notify reboot")(lambda vc: ())
tag(0x00030058, "notify xHCI reset", "u32 device", "u32 status")(lambda vc, device: 0)
tag(0x00030066, "notify display done")(lambda vc: ())
tag(0x0004000F, "touch buffer", "", "u32 address")(lambda vc: vc.touch_buffer)
tag(0x00040010, "GPIO virtual buffer", "", "u32 address")(lambda vc: vc.gpio_buffer)
tag(0x0003000F, "release memory", "u32 handle", "u32 status")(
    lambda vc, handle: 0 if vc.pool.release(handle) else 1
)
tag(0x00030014, "dispmanx memory handle", "u32 resource", "u32 status, u32 handle")(
    lambda vc, resource: (1, 0)
)


@tag(0x0003000C, "allocate memory", "u32 size, u32 alignment, u32 flags", "u32 handle")
def allocate_memory(vc: VideoCore, size: int, alignment: int, flags: int) -> int:
    block = vc.pool.allocate(size, alignment, flags)
    if block is None:
        vc.reporter.report(
            "SOC-023",
            f"no room for {size} bytes of VideoCore memory at alignment {alignment}; "
            f"{vc.pool.free} of {vc.vc_memory} bytes are free (gpu_mem={vc.vc_memory >> 20})",
            block="mailbox",
        )
        return 0
    if flags & FLAG_ZERO:
        vc.memory.fill(block.address, block.size)
    return block.handle


@tag(0x0003000D, "lock memory", "u32 handle", "u32 address")
def lock_memory(vc: VideoCore, handle: int) -> int:
    block = vc.pool.blocks.get(handle)
    if block is None:
        return 0
    block.locked = True
    return block.bus_address


@tag(0x0003000E, "unlock memory", "u32 handle", "u32 status")
def unlock_memory(vc: VideoCore, handle: int) -> int:
    block = vc.pool.blocks.get(handle)
    if block is None:
        return 1
    block.locked = False
    return 0


@tag(0x00030020, "EDID block", "u32 block", "u32 block, u32 status, bytes edid")
def edid(vc: VideoCore, block: int) -> tuple[int, int, bytes]:
    found = vc.monitor_edid()[SIZE * block : SIZE * (block + 1)]
    return block, 0 if found else 1, found or bytes(SIZE)


@tag(0x00030021, "customer OTP", "u32 start, u32 count", "u32 start, u32 count, bytes values")
def get_otp(vc: VideoCore, start: int, count: int) -> tuple[int, int, bytes]:
    words = vc.otp[start : start + count] if start < OTP_WORDS else []
    return start, len(words), struct.pack(f"<{len(words)}I", *(word & 0xFFFFFFFF for word in words))


@tag(0x00038021, "set customer OTP", "u32 start, u32 count, bytes values", "u32 start, u32 count")
def set_otp(vc: VideoCore, start: int, count: int, values: bytes) -> tuple[int, int]:
    """Fuses: a bit that is 1 stays 1."""
    count = min(count, max(OTP_WORDS - start, 0), len(values) // 4)
    for at, word in enumerate(struct.unpack_from(f"<{count}I", values), start):
        vc.otp[at] |= word
    return start, count


def _expander_pin(pin: int) -> int | None:
    number = pin - FIRST_EXPANDER_PIN
    return number if 0 <= number < EXPANDER_PINS else None


@tag(0x00030041, "get GPIO expander", "u32 pin", "u32 status, u32 state")
def get_expander(vc: VideoCore, pin: int) -> tuple[int, int]:
    number = _expander_pin(pin)
    return (1, 0) if number is None else (0, vc.expander[number])


@tag(0x00038041, "set GPIO expander", "u32 pin, u32 state", "u32 status")
def set_expander(vc: VideoCore, pin: int, state: int) -> int:
    number = _expander_pin(pin)
    if number is None:
        return 1
    vc.expander[number] = state & 1
    return 0


_SETUP = "u32 direction, u32 polarity, u32 termination, u32 pull_up"


@tag(0x00030043, "get GPIO config", "u32 pin", "u32 status, " + _SETUP)
def get_gpio_config(vc: VideoCore, pin: int) -> list[int]:
    number = _expander_pin(pin)
    return [1, 0, 0, 0, 0] if number is None else [0, *vc.expander_setup[number]]


@tag(0x00038043, "set GPIO config", f"u32 pin, {_SETUP}, u32 state", "u32 status")
def set_gpio_config(vc: VideoCore, pin: int, *values: int) -> int:
    number = _expander_pin(pin)
    if number is None:
        return 1
    vc.expander_setup[number][:] = values[:4]
    vc.expander[number] = values[4] & 1
    return 0


@tag(0x00030049, "PoE HAT value", "u32 register", "u32 register, u32 value, u32 status")
@tag(0x00030050, "set PoE HAT value", "u32 register", "u32 register, u32 value, u32 status")
def poe_hat(vc: VideoCore, register: int) -> tuple[int, int, int]:
    """There is none."""
    return register, 0, 1


@tag(0x00048010, "VCHIQ init", "u32 address", "u32 status")
def vchiq(vc: VideoCore, address: int) -> int:
    """Refused: a status other than 0."""
    if vc.v3d.powered:
        vc.reporter.report(
            "SOC-081",
            "the program sets up VCHIQ, through which the firmware's GL uses the V3D, and uses the "
            "V3D itself: both would start lists",
            address=address,
            block="mailbox",
        )
    else:
        vc.reporter.report("SOC-088", "VCHIQ is requested", address=address, block="mailbox")
    return 1


@tag(0x00048020, "set GPIO virtual buffer", "u32 address", "u32 status")
def gpio_buffer(vc: VideoCore, address: int) -> int:
    vc.gpio_buffer = address
    return 0


@tag(0x0004801F, "set touch buffer", "u32 address", "u32 status")
def touch_buffer(vc: VideoCore, address: int) -> int:
    vc.touch_buffer = address
    return 0
