"""config.txt as the firmware reads it: `key=value` lines and `[pi2]`-style filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from vc4lab.diagnostics import Reporter
from vc4lab.soc.boot.display_modes import CEA, DEFAULT_MODE, DMT, LONGEST_SIDE, MODES
from vc4lab.soc.pins import PULL_UP_AT_RESET

LONGEST_FILE = 1 << 20
LONGEST_LINE = 98
"""The firmware cuts lines after this many characters."""
OTHER_FILTERS = re.compile(
    r"all|none|pi0|pi0w|pi02|pi1|pi2|pi3|pi3\+|pi4|pi400|pi5|cm\d\w*|board-type=.*|edid=.*|"
    r"gpio\d+=[01]|hdmi:[01]|tryboot|0x[0-9a-f]{1,8}|bootloader.*|partition=.*",
    re.IGNORECASE,
)

KEYS = frozenset(
    """
    arm_64bit arm_boost arm_control arm_freq arm_freq_min armstub audio_pwm_mode auto_initramfs
    avoid_pwm_pll avoid_safe_mode avoid_warnings boot_delay boot_delay_ms bootcode_delay
    camera_auto_detect cmdline config_hdmi_boost core_freq core_freq_min decode_mpg2 decode_wvc1
    device_tree device_tree_address device_tree_end device_tree_overlay device_tree_param
    disable_audio_dither disable_camera_led disable_commandline_tags disable_fw_kms_setup
    disable_l2cache disable_overscan disable_pvt
    disable_splash disable_touchscreen display_auto_detect display_default_lcd
    display_hdmi_rotate display_lcd_rotate display_rotate dtdebug dtoverlay dtparam enable_jtag_gpio
    enable_l2cache enable_tvout enable_uart fake_vsync_isr force_eeprom_read force_turbo
    framebuffer_align framebuffer_depth framebuffer_height framebuffer_ignore_alpha
    framebuffer_priority framebuffer_swap framebuffer_width gpio gpu_freq gpu_freq_min gpu_mem
    gpu_mem_1024 gpu_mem_256 gpu_mem_512 h264_freq hdmi_blanking hdmi_boost hdmi_channel_map
    hdmi_cvt hdmi_drive hdmi_edid_file hdmi_enable_4kp60 hdmi_force_cec_address hdmi_force_edid_3d
    hdmi_force_edid_audio hdmi_force_hotplug hdmi_force_mode hdmi_group hdmi_ignore_cec
    hdmi_ignore_cec_init hdmi_ignore_composite hdmi_ignore_edid hdmi_ignore_edid_audio
    hdmi_ignore_hotplug hdmi_max_pixel_freq hdmi_mode hdmi_pixel_encoding hdmi_pixel_freq_limit
    hdmi_safe hdmi_timings ignore_lcd include init_emmc_clock init_uart_baud init_uart_clock
    initial_turbo initramfs isp_freq kernel kernel_address kernel_old max_framebuffer_height
    max_framebuffer_width max_framebuffers max_usb_current mask_gpu_interrupt0
    mask_gpu_interrupt1 os_prefix overlay_prefix over_voltage over_voltage_min over_voltage_sdram
    overscan_bottom overscan_left overscan_right overscan_scale overscan_top pause_burst_frames
    program_usb_boot_mode ramfsaddr ramfsfile scaling_kernel sdram_freq sdram_freq_min
    sdtv_aspect sdtv_disable_colourburst sdtv_mode start_debug start_file start_x fixup_file
    sdram_schmoo temp_limit test_mode total_mem uart_2ndstage v3d_freq v3d_freq_min
    """.split()  # noqa: SIM905
)
"""Keys the firmware knows; others are reported as a hint (it ignores them silently)."""

UART_OVERLAYS = frozenset(("disable-bt", "pi3-disable-bt", "miniuart-bt", "pi3-miniuart-bt"))
"""Overlays that give the PL011 back to the header: no Bluetooth, or Bluetooth by the mini UART."""

TREE_KEYS = {"device_tree_overlay": "dtoverlay", "device_tree_param": "dtparam"} | {
    key: key for key in ("dtoverlay", "dtparam")
}
"""Keys of overlays and parameters of the device tree, by their older names, too."""


@dataclass
class Config:
    """The settings that apply to this board. Values are text; the last one of a key counts."""

    values: dict[str, str] = field(default_factory=dict)
    command_line: str = ""
    ramdisk: tuple[str, int | None] = ("", None)
    """File of the initramfs line and its address; None: after the kernel."""
    tree_lines: list[tuple[str, str, str]] = field(default_factory=list)
    """Each dtoverlay and dtparam line: key, value, where it stands."""

    def get(self, key: str, default: str = "") -> str:
        """The value as text."""
        return self.values.get(key, default)

    def integer(self, key: str, default: int = 0) -> int:
        """The value as a number (decimal or 0x…), `default` if absent or no number."""
        text = self.values.get(key)
        if text is None:
            return default
        number = _number(text)
        return default if number is None else number

    def flag(self, key: str) -> bool:
        """Whether the key is set to a number other than 0."""
        return self.integer(key) != 0

    @property
    def overlays(self) -> list[str]:
        """Names of the overlays that are asked for, in order."""
        values = (value for key, value, _where in self.tree_lines if key == "dtoverlay")
        return [re.split("[:,]", value, maxsplit=1)[0].strip() for value in values]

    @property
    def frees_pl011(self) -> bool:
        """Whether the PL011 is taken from Bluetooth and leads to GPIO 14 and 15 (Pi 3).

        The firmware acts on these names itself, also without the overlay's file.
        """
        return not UART_OVERLAYS.isdisjoint(self.overlays)

    def display_mode(self) -> tuple[int, int, int]:
        """Width, height and refresh rate of the display by hdmi_group and hdmi_mode."""
        group = self.integer("hdmi_group")
        mode = self.integer("hdmi_mode")
        if group == DMT and mode == 87 and "hdmi_cvt" in self.values:
            custom = [_number(part) or 0 for part in self.values["hdmi_cvt"].split()[:3]]
            if len(custom) >= 2 and all(0 < side <= LONGEST_SIDE for side in custom[:2]):
                rate = custom[2] if len(custom) > 2 and 10 <= custom[2] <= 240 else 60
                return custom[0], custom[1], rate
        if group in (CEA, DMT):
            return MODES.get((group, mode), DEFAULT_MODE)
        return DEFAULT_MODE


def _number(text: str) -> int | None:
    match = re.fullmatch(r"\s*(-?)(0x[0-9a-fA-F]{1,16}|\d{1,19})\s*", text)
    if match is None:
        return None
    value = int(match[2], 0 if match[2].startswith("0x") else 10)
    return -value if match[1] else value


@dataclass(frozen=True)
class _Board:
    """The facts about a board that filters ask for."""

    filters: frozenset[str]
    revision: int
    serial: int
    levels: Mapping[int, int]

    def meets(self, title: str) -> bool:
        """Whether the lines below `[title]` apply to this board."""
        title = title.lower()
        if title.startswith("board-type="):
            return _number(title[11:]) == self.revision >> 4 & 0xFF
        if re.fullmatch(r"0x[0-9a-f]{1,8}", title):
            return int(title, 16) == self.serial
        pin = re.fullmatch(r"gpio(\d{1,2})=([01])", title)
        if pin:  # where nothing is connected it reads as it is pulled
            number = int(pin[1])
            return self.levels.get(number, PULL_UP_AT_RESET >> number & 1) == int(pin[2])
        return title in self.filters


def _kind(title: str) -> str:
    """Filters of one kind replace each other, those of different kinds must all be met."""
    found = re.match(r"0x|edid|gpio|hdmi|tryboot|partition", title.lower())
    return found[0] if found else "model"


def parse_config(
    text: str,
    filters: Iterable[str],
    reporter: Reporter,
    *,
    read: Callable[[str], str | None] = lambda _name: None,
    revision: int = 0,
    serial: int = 0,
    levels: Mapping[int, int] = {},
) -> Config:
    """Read config.txt; lines of other boards are skipped, nonsense is reported and skipped.

    Parameters
    ----------
    filters
        Names of sections that apply; `[all]` always does.
    read
        Gives the text of a file that a line includes, None if there is none (or too many).
    revision, serial
        The board's numbers, for the filters that ask for them.
    levels
        What is connected to GPIO pins, by their numbers.
    """
    config = Config()
    board = _Board(frozenset(filters) | {"all"}, revision, serial, levels)
    _parse(config, text, board, reporter, "config.txt", read)
    return config


def _parse(
    config: Config, text: str, board: _Board, reporter: Reporter, name: str, read: Callable[[str], str | None]
) -> None:
    unmet: set[str] = set()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip().lstrip("\ufeff")
        if not line or line.startswith("#"):
            continue
        where = f"{name} line {number}"
        if len(line) > LONGEST_LINE:
            reporter.report("BOOT-012", f"{where} is longer than {LONGEST_LINE} characters")
            line = line[:LONGEST_LINE]
        section = re.fullmatch(r"\[([^\]]*)\]", line)
        if section:
            title = section[1].strip()
            if OTHER_FILTERS.fullmatch(title) is None:
                reporter.report("BOOT-011", f"{where}: unknown filter [{printable(title)}]")
            if title.lower() == "all":
                unmet.clear()
            elif board.meets(title):
                unmet.discard(_kind(title))
            else:
                unmet.add(_kind(title))
            continue
        if unmet:
            continue
        command = re.fullmatch(r"(include|initramfs)\s+(.+)", line)
        if command is None:
            _setting(config, line, where, reporter)
        elif command[1] == "initramfs":
            _initramfs(config, command[2].split(), where, reporter)
        else:
            included = read(command[2].strip())
            if included is None:
                text = f"cannot include {printable(command[2])}: missing, or it includes this file"
                reporter.report("BOOT-013", f"{where}: {text}")
            else:
                _parse(config, included, board, reporter, printable(command[2]), read)


def _initramfs(config: Config, words: list[str], where: str, reporter: Reporter) -> None:
    """`initramfs FILE [followkernel|ADDRESS]`"""
    place = words[1] if len(words) > 1 else "followkernel"
    address = None if place == "followkernel" else _number(place)
    if address is None and place != "followkernel":
        reporter.report("BOOT-010", f"{where}: {printable(place)!r} is not an address")
    config.ramdisk = (words[0], address)


def _setting(config: Config, line: str, where: str, reporter: Reporter) -> None:
    key, equals, value = line.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not re.fullmatch(r"[A-Za-z0-9_:]+", key):
        reporter.report("BOOT-010", f"{where}: {printable(line)!r} is neither key=value nor a filter")
        return
    plain = key.partition(":")[0].lower()
    if plain not in KEYS:
        reporter.report("BOOT-014", f"{where}: the firmware does not know the key {printable(key)!r}")
    if plain == "initramfs":
        _initramfs(config, value.split() or [""], where, reporter)
    plain = TREE_KEYS.get(plain, plain)
    if plain in TREE_KEYS.values():
        config.tree_lines.append((plain, value, where))
    config.values[plain] = value


def printable(text: str) -> str:
    """Guest text, shortened and made printable."""
    return "".join(c if c.isprintable() else "?" for c in text[:60])
