"""Why the screen is still black when a run ends: never written, drawn elsewhere, or never drawn.

Looks once, at the end of a run, and only says what no other message has said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics import Severity, severity_of
from vc4lab.memory import MEMORY_MASK
from vc4lab.soc.clock import NANOSECONDS
from vc4lab.soc.result import RunResult, Stop

if TYPE_CHECKING:
    from vc4lab.soc.hardware import Hardware

SHORTEST = NANOSECONDS // 2
"""Guest time after which a program that is stopped from outside should have shown something."""
PALETTE_BITS = 8
"""Pixels of so many bits, or fewer, are numbers of colours."""
KNOWN = ("BOOT-", "CLE-", "MEM-", "VTX-", "FRG-", "QPU-", "DRAW-")
OTHERS = frozenset(
    {"SOC-003", "SOC-010", "SOC-011", "SOC-014", "SOC-021", "SOC-030", "SOC-081", "SOC-087", "SOC-112"}
)
"""Messages that have named the cause: those that begin so, from warnings on, and these."""


def explain_black_screen(hardware: Hardware, result: RunResult) -> None:
    """Report why a run has ended without a picture, if nothing else has said it."""
    framebuffer, frames = hardware.videocore.framebuffer, hardware.frames
    stopped = result.reason in (Stop.FRAMES, Stop.SECONDS, Stop.STOPPED)
    if framebuffer.composed is not None or (stopped and hardware.clock.now < SHORTEST):
        return
    if result.reason in (Stop.CRASH, Stop.RESET) or _is_explained(hardware):
        return
    if framebuffer.allocation is None:
        if framebuffer.is_wanted and not framebuffer.was_allocated:
            _report_no_framebuffer(hardware)
        return
    if framebuffer.blank:
        hardware.reporter.report(
            "SOC-144",
            "the program has switched the display off (tag 0x00040002), and not on again",
            address=framebuffer.address,
            block="framebuffer",
        )
    elif not framebuffer.is_clear:
        _look_at_palette(hardware)
    elif frames.rendered:
        _report_elsewhere(hardware)
    elif not _report_idle(hardware):
        _report_never_written(hardware)


def _is_explained(hardware: Hardware) -> bool:
    for item in hardware.reporter.items:
        if item.code in OTHERS or severity_of(item.code) >= Severity.ERROR:
            return True
        if item.code.startswith(KNOWN) and (
            item.code.startswith("DRAW-") or severity_of(item.code) >= Severity.WARNING
        ):
            return True
    return False


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames, the last one"


def _surface(hardware: Hardware) -> Any:
    """The mode of the frame that the V3D has drawn last."""
    return getattr(getattr(hardware.v3d, "rendering", None), "mode", None)


def _report_no_framebuffer(hardware: Hardware) -> None:
    framebuffer, mode = hardware.videocore.framebuffer, _surface(hardware)
    g, count = framebuffer.geometry, hardware.frames.rendered
    text = (
        f"the program has set up a display of {g.width} x {g.height} pixels, but has not asked for its "
        "memory (mailbox tag 0x00040001, allocate buffer)"
    )
    if count and mode is not None:
        text += f"; the V3D has drawn {_frames(count)} to 0x{mode.address:08x}"
    hardware.reporter.report("SOC-140", text, block="framebuffer")


def _report_elsewhere(hardware: Hardware) -> None:
    """Frames were drawn, and none of it is in the rows that are shown."""
    framebuffer, mode = hardware.videocore.framebuffer, _surface(hardware)
    if mode is None:
        return
    g, count = framebuffer.geometry, hardware.frames.rendered
    offset = (mode.address & MEMORY_MASK) - framebuffer.address
    first = framebuffer.address + g.y * g.pitch
    if -mode.height * g.pitch < offset - g.y * g.pitch < g.height * g.pitch:
        return  # it is shown, and all of it is black
    drawn = (
        f"the V3D has drawn {_frames(count)} of {mode.width} x {mode.height} pixels to 0x{mode.address:08x}"
    )
    if 0 <= offset < framebuffer.allocated_size:
        text = (
            f"{drawn}, row {offset // g.pitch} of the framebuffer, but rows {g.y} to {g.y + g.height - 1} "
            f"are shown: tag 0x00048009 (set virtual offset) shows others"
        )
    else:
        text = (
            f"{drawn}, but the display shows 0x{first:08x} to 0x{first + g.height * g.pitch - 1:08x} (bus "
            f"address 0x{first | framebuffer.alias:08x}), where nothing is written: record 113 has the "
            "address"
        )
    hardware.reporter.report("SOC-141", text, address=mode.address, block="framebuffer")


def _report_idle(hardware: Hardware) -> bool:
    """The V3D was switched on, and no frame came of it; whether that was said."""
    v3d = hardware.v3d
    if v3d is None or not hasattr(v3d, "threads") or v3d.programs.used or not hardware.v3d_bridge.powered:
        return False
    binning, rendering = v3d.threads
    parts = []
    for thread in (binning, rendering):
        names = f"CT{thread.number}CA", f"CT{thread.number}EA"
        if thread.started:
            continue
        text = f"no {thread.name} list was started"
        if thread.current and thread.current == thread.end:
            text += f" ({names[0]} and {names[1]} are both 0x{thread.end:08x}: the list is empty)"
        elif thread.current:
            text += (
                f" ({names[0]} is 0x{thread.current:08x}, but {names[1]}, which starts it, was not written)"
            )
        else:
            text += f" (registers {names[0]} and {names[1]})"
        parts.append(text)
    text = "; ".join(parts) or v3d.waiting or "its lists have ended without the end of a frame (record 25)"
    hardware.reporter.report(
        "SOC-142", f"the V3D was switched on, but has drawn no frame: {text}", block="v3d"
    )
    return True


def _look_at_palette(hardware: Hardware) -> None:
    """The picture is not black, but the display shows it as such."""
    framebuffer = hardware.videocore.framebuffer
    g = framebuffer.geometry
    image = framebuffer.image() if g.depth <= PALETTE_BITS else None
    if image is not None and image.getbbox() is None:
        hardware.reporter.report(
            "SOC-144",
            f"the picture has {g.depth} bits a pixel, which are numbers of colours, and all colours that it "
            "uses are black: the program has set no palette (tag 0x0004800b)",
            address=framebuffer.address,
            block="framebuffer",
        )


def _report_never_written(hardware: Hardware) -> None:
    framebuffer = hardware.videocore.framebuffer
    g = framebuffer.geometry
    place = framebuffer.address
    rest = framebuffer.allocated_size
    if rest > g.height * g.pitch and not framebuffer.memory.is_clear(place, rest):
        hardware.reporter.report(
            "SOC-141",
            f"the framebuffer has {g.virtual_height} rows, and something is drawn in those that are not "
            f"shown; rows {g.y} to {g.y + g.height - 1}, which are black, are: tag 0x00048009 (set virtual "
            "offset) shows others",
            address=place,
            block="framebuffer",
        )
        return
    if framebuffer.was_written_early:
        hardware.reporter.report(
            "SOC-143",
            f"something was written at 0x{place:08x} before the framebuffer was allocated there; the "
            "firmware has cleared it then, and nothing was written since",
            address=place,
            block="framebuffer",
        )
        return
    hardware.reporter.report(
        "SOC-140",
        f"the framebuffer of {g.width} x {g.height} pixels at 0x{place:08x} (bus address "
        f"0x{framebuffer.bus_address:08x}) was allocated, and nothing was ever written there",
        address=place,
        block="framebuffer",
    )
