"""The contents of a saved state: one row per object, with the attributes that are its state.

Everything else (callbacks, caches, compiled code, translated blocks) is made again from these. A
new peripheral or a new attribute of one needs a row here; a test compares the table with the
blocks, so that it cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

from vc4lab.soc.machine import Machine
from vc4lab.v3d.state.power_on import parts_of
from vc4lab.v3d.state.saved_values import BadValue as BadValue
from vc4lab.v3d.state.saved_values import Row

BLOCK_STATE: dict[str, tuple[str, ...]] = {
    "arm_timer": ("_started", "_first", "_raw"),
    "aux": ("_held", "_held_count"),
    **{f"dma{n}": ("_loaded", "_row", "_left", "_rows", "_shortest") for n in range(16)},
    "emmc": ("_command", "_direction", "_left", "_auto_stop", "_buffer", "_at", "_ready"),
    "gpio": (
        *("levels", "changes", "_outputs", "_driven", "_drive", "_pulled_up"),
        *("_seen", "_rising", "_falling", "_high", "_low"),
    ),
    "hvs": ("lists", "sent", "ramps"),
    **{f"i2c{n}": ("_fifo", "_left", "_fresh") for n in range(3)},
    "irq": ("lines", "basic_lines", "enabled", "basic_enabled", "mailbox_lines", "ever_raised"),
    "local": ("_mailboxes", "_held_low", "_held_high", "_carry"),
    "mailbox": ("replies", "messages", "requests", "_due", "_looked"),
    "pcm": ("_queued", "_heard", "_counted"),
    **{f"pv{n}": ("_began", "_even") for n in range(3)},
    "pwm": ("_fifo", "_next", "_levels", "played"),
    "rng": ("_state",),
    "sdhost": ("_command", "_direction", "_left", "_buffer", "_at", "_ready", "_dma"),
    "smi": ("acknowledged",),
    **{f"spi{n}": ("_received",) for n in range(3)},
    "txp": ("_began",),
    "uart0": ("_sent", "_filled", "_looped"),
    "v3d": ("writes", "lost"),
}
"""Attributes that blocks have besides their registers' values. Events are in `state.py`."""

CARD_STATE = (
    "state", "errors", "app", "wide", "_told_voltage", "_asked", "_position", "_left", "_count",
    "_announced", "_register", "_written", "_erase_first", "_erase_last", "_fast",
)  # fmt: skip


def rows(machine: Machine) -> Iterator[Row]:
    """The table for a machine (and its V3D, if it has one)."""
    yield Row("machine", machine, ("vsyncs", "_next_vsync"))
    yield Row("clock", machine.clock, ("skipped", "events_run", "_share"))
    yield Row("serial", machine.serial, ("sent", "input_looked_for", "_output", "_input"))
    for uart in (machine.uart, machine.mini_uart):
        yield Row(f"{uart.NAME} line", uart._queue, ("done", "byte"))
    yield Row("cores", machine.turns, ("_quiet", "_hopeless", "_calm", "_events_seen"))
    for core in machine.processors.all:
        name = f"core{core.number}"
        scheduling = (
            *("parked", "asleep", "event", "wish", "wake_at", "vain", "naps", "nap", "probes"),
            *("looks", "stream_at", "returns"),
        )
        yield Row(name, core, scheduling)
        yield Row(f"{name}.cpu", core.cpu, ("exceptions_taken",))
        timer = core.cpu.links.timer
        if timer is not None:
            rate = ("_prescaler", "_since", "_count_then", "frequency", "streams")
            yield Row(f"{name}.timer", timer, rate)
    for bus in machine.hardware.buses:
        yield Row(f"bus {bus.name}", bus, ("_last", "accesses"))
        for _start, block in bus.blocks:
            yield Row(block.NAME, block, ("values", *BLOCK_STATE.get(block.NAME, ())))
    yield Row("monitor", machine.hardware.monitor, ("at", "edid", "connected"))
    yield Row("SD card", machine.emmc.card, CARD_STATE)
    vc = machine.videocore
    firmware = (
        *("clock_rates", "clock_states", "domains", "devices", "expander", "turbo", "overscan"),
        *("otp", "touch_buffer", "gpio_buffer", "expander_setup"),
    )
    yield Row("firmware", vc, firmware)
    yield Row("framebuffer", vc.framebuffer, ("flips", "blank", "palette", "order_told"))
    cursor = ("width", "height", "pixels", "hot_x", "hot_y", "shown", "x", "y")
    yield Row("cursor", vc.framebuffer.cursor, cursor)
    yield Row(
        "frames",
        machine.frames,
        (
            "count", "rendered", "changes", "_pending", "_flipped", "_checksum", "_blank",
            "_unsettled", "_last_acknowledged", "_vsyncs_with_v3d",
        ),
    )  # fmt: skip
    progress = machine.v3d_bridge.time.progress
    yield Row("V3D time", progress, ("pending", "threads", "qpus", "dma", "_signals"))
    v3d = machine.v3d
    if v3d is not None and hasattr(v3d, "threads"):
        for name, part, attributes in parts_of(v3d):
            yield Row(f"V3D {name}", part, attributes)
