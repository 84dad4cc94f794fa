"""The firmware's state on the VideoCore side of the mailbox: power, clocks, memory, display."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.soc.board import Board
from vc4lab.soc.board_unknowns import Unknowns
from vc4lab.soc.boot.boot_plan import arm_memory, vc_memory
from vc4lab.soc.boot.clock_rates import HIGHEST_RATE, V3D_CLOCK, rates_at_start
from vc4lab.soc.boot.config_txt import Config
from vc4lab.soc.boot.linked_for_zero import LinkedForZero
from vc4lab.soc.clock import Clock
from vc4lab.soc.devices.v3d_bridge import V3DBridge
from vc4lab.soc.videocore.framebuffer import BGR, LARGEST_SIDE, RGB, Framebuffer, Geometry
from vc4lab.soc.videocore.vc_memory import VideoCoreMemory

ORDERS = {"rgb": RGB, "bgr": BGR}
V3D_DOMAIN = 11
DOMAINS = 24
OTP_WORDS = 8
FIRST_EXPANDER_PIN, EXPANDER_PINS = 128, 8
MAC = bytes((0xB8, 0x27, 0xEB, 0x00, 0x56, 0xC4))
FIRMWARE_REVISION = 0x5B0B9A3F
CUT_DOWN_GPU_MEM = 16
"""MiB with which the cut-down firmware is loaded."""


class VideoCore:
    """Keeps what the firmware knows, asked by property tags and the older mailbox channels."""

    def __init__(
        self,
        board: Board,
        config: Config,
        memory: GuestMemory,
        clock: Clock,
        reporter: Reporter,
        v3d: V3DBridge,
        unknowns: Unknowns,
        linked_for_zero: LinkedForZero,
    ) -> None:
        self.board = board
        self.config = config
        self.memory = memory
        self.clock = clock
        self.reporter = reporter
        self.v3d = v3d
        self.unknowns = unknowns
        self.linked_for_zero = linked_for_zero
        self.vc_memory = vc_memory(board, config)
        self.arm_memory = arm_memory(board, config)
        end = min(board.ram, board.peripherals)
        self.pool = VideoCoreMemory(min(self.arm_memory, end), end)
        self.overscan = self._overscan_of_config()
        alias = board.alias if unknowns["framebuffer_address"] == "bus" else 0
        self.framebuffer = Framebuffer(memory, self.pool, reporter, alias, self._default_geometry())
        self.framebuffer.ignores_alpha = self._ignores_alpha()
        self.framebuffer.low_first = unknowns["framebuffer_small_pixels"] == "low"
        self.clock_rates = rates_at_start(board, config, reporter, unknowns["uart_clock"] == "3mhz")
        self.clock_states = dict.fromkeys(self.clock_rates, 1)
        self.clock_states[V3D_CLOCK] = 0
        self.display_clocks: dict[int, Callable[[int], None]] = {}
        """Functions that set the clocks of displays, by number, to Hz."""
        self.domains = [0] * (DOMAINS + 1)
        self.devices = [1] * 9
        self.expander = [0] * EXPANDER_PINS
        self.expander_setup = [[1, 0, 0, 0] for _pin in range(EXPANDER_PINS)]
        """Direction, polarity, termination and pull of each."""
        self.turbo = 0
        self.otp = [0] * OTP_WORDS
        """Those for customers."""
        self.touch_buffer = self.gpio_buffer = 0
        """The program's places for touches, and for GPIO 128 and up; returned as written."""
        self.monitor_edid: Callable[[], bytes] = bytes
        """The EDID of the monitor that is plugged in; empty without one."""
        self.next_vsync: Callable[[], int] = lambda: clock.now
        """The moment of the display's next vertical sync."""
        self.execute_code: Callable[[int, Sequence[int]], int | None] = lambda code, values: None
        """Runs a function on the VPU with r0… as given; its r0, None if it does not come back."""

    def possible_overscan(self, wanted: Sequence[int]) -> list[int]:
        """Borders (top, bottom, left, right) that leave something of the display."""
        width, height, _rate = self.config.display_mode()
        sides = (height, height, width, width)
        return [min(value, side // 4) for value, side in zip(wanted, sides, strict=True)]

    def _overscan_of_config(self) -> list[int]:
        if self.config.flag("disable_overscan"):
            return [0, 0, 0, 0]
        names = ("top", "bottom", "left", "right")
        return self.possible_overscan([max(self.config.integer(f"overscan_{name}"), 0) for name in names])

    def _default_geometry(self) -> Geometry:
        width, height, _rate = self.config.display_mode()
        top, bottom, left, right = self.overscan
        width, height = width - left - right, height - top - bottom
        width = self.config.integer("framebuffer_width", width)
        height = self.config.integer("framebuffer_height", height)
        depth = self.config.integer("framebuffer_depth", 16)
        order = self._first_order(self.unknowns["framebuffer_order"])
        return Geometry(width, height, width, height, depth, order=order).sane()

    def _first_order(self, usual: str) -> int:
        """The pixel order of a program that chooses none: config.txt's, else the usual one."""
        if "framebuffer_swap" in self.config.values:
            return ORDERS["bgr" if self.config.flag("framebuffer_swap") else "rgb"]
        return ORDERS[usual]

    def _ignores_alpha(self) -> bool:
        """Whether the alpha mode has no effect: config.txt's word, else the firmware's default."""
        if "framebuffer_ignore_alpha" in self.config.values:
            return self.config.flag("framebuffer_ignore_alpha")
        return self.unknowns["framebuffer_alpha"] == "ignored"

    # -- power -------------------------------------------------------------------------------------

    def set_clock_state(self, number: int, on: int) -> None:
        """Switch a clock; the V3D's makes the V3D usable."""
        if number in self.clock_states:
            self.clock_states[number] = on & 1
            if number == V3D_CLOCK:
                self._switch_v3d("clock", bool(on & 1))

    def set_clock_rate(self, number: int, hertz: int) -> None:
        """Change a clock's rate; those of displays follow it."""
        if number in self.clock_rates and hertz:
            self.clock_rates[number] = min(hertz, HIGHEST_RATE)
            if number in self.display_clocks:
                self.display_clocks[number](self.clock_rates[number])

    def set_domain(self, number: int, on: int) -> None:
        """Switch a power domain; the V3D's makes the V3D usable."""
        if 0 < number <= DOMAINS:
            self.domains[number] = on & 1
            if number == V3D_DOMAIN:
                self._switch_v3d("domain", bool(on & 1))

    def enable_qpu(self, on: bool) -> None:
        """The firmware gives the V3D to the ARM, or takes it back."""
        self._switch_v3d("enable QPU", on)

    def _switch_v3d(self, supply: str, on: bool) -> None:
        self.v3d.switch(supply, on)
        if on and self.vc_memory >> 20 <= CUT_DOWN_GPU_MEM:
            self.reporter.report(
                "SOC-082",
                f"the V3D is powered on with gpu_mem={self.vc_memory >> 20}, where a board loads "
                "the cut-down firmware (start_cd.elf)",
                block="firmware",
            )

    # -- the older channels ------------------------------------------------------------------------

    def power_channel(self, data: int) -> int:
        """Channel 0: the mask of devices to be on, answered with the mask that is."""
        return data

    def framebuffer_channel(self, data: int) -> int:
        """Channel 1: a 40-byte structure at `data`; 0 in the reply means it worked.

        A request with the sizes and depth of the one before keeps the memory and the picture in it:
        so programs of 2012 to 2015 flipped pages, with another offset in the same structure.
        """
        memory, framebuffer = self.memory, self.framebuffer
        if not memory.contains(data, 40):
            self.reporter.report(
                "SOC-011", "a framebuffer structure outside RAM", address=data, block="mailbox"
            )
            return 0x10
        if not data >> 30:
            self.reporter.report(
                "SOC-080",
                f"the framebuffer structure is passed as ARM address 0x{data:08x}; add "
                f"0x{self.board.alias:08x}, or the answer may stay in the VideoCore's L2 cache",
                address=data,
                block="mailbox",
            )
        if not any(memory.read(data, 40)):
            self._look_for_structure(data)
        width, height, virtual_width, virtual_height = struct.unpack("<4I", memory.read(data, 16))
        depth, x, y = (memory.u32(data + at) for at in (20, 24, 28))
        if width == 0 or height == 0:
            width, height = framebuffer.geometry.width, framebuffer.geometry.height
        before = framebuffer.geometry
        framebuffer.change(
            width=width,
            height=height,
            virtual_width=virtual_width or width,
            virtual_height=virtual_height or height,
            depth=depth,
            x=x,
            y=y,
            order=self._first_order(self.unknowns["framebuffer_order_channel_1"]),
        )
        if depth <= 8:
            framebuffer.palette = [_from_rgb565(memory.u16(data + 40 + 2 * i)) for i in range(256)]
        geometry = framebuffer.geometry
        kept = framebuffer.allocation is not None and geometry.has_layout_of(before)
        worked = kept or framebuffer.allocate()
        memory.set_u32(data, geometry.width)
        memory.set_u32(data + 4, geometry.height)
        memory.set_u32(data + 16, geometry.pitch)
        memory.set_u32(data + 32, framebuffer.bus_address)
        memory.set_u32(data + 36, framebuffer.allocated_size)
        return 0 if worked else 0x10

    def _look_for_structure(self, data: int) -> None:
        """The structure of channel 1 is all zeros: is it where an image linked for 0 has it?"""
        place = self.linked_for_zero.message_place(data)
        if place is None or not self.memory.contains(place, 40):
            return
        width, height = self.memory.u32(place), self.memory.u32(place + 4)
        if 0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE:
            text = "a framebuffer structure of zeros" + self.linked_for_zero.found_message()
            self.reporter.report("SOC-011", text, address=data, block="mailbox")


def _from_rgb565(word: int) -> int:
    """A 565 palette entry as a BGR palette word (byte 0 blue)."""
    red, green, blue = word >> 11 & 31, word >> 5 & 63, word & 31
    red, green, blue = red * 255 // 31, green * 255 // 63, blue * 255 // 31
    return 0xFF000000 | red << 16 | green << 8 | blue
