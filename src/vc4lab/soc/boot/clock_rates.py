"""Rates of the firmware's clocks at the start: the board's, or those of config.txt."""

from __future__ import annotations

from vc4lab.diagnostics import Reporter
from vc4lab.soc.board import Board
from vc4lab.soc.boot.config_txt import Config

EMMC, UART, ARM, CORE, V3D_CLOCK, H264, ISP, SDRAM, PIXEL, PWM = range(1, 11)
HDMI_STATE, VEC = 13, 15
"""Linux's M2MC, by which newer kernels mean that of HDMI's state machine (HSM in the clock
manager); the clock of analogue video. 11, 12 and 14 belong to later chips."""
MEGAHERTZ = 1_000_000
FORMER_UART = 3 * MEGAHERTZ
"""The PL011's clock until 2016, where Bluetooth does not need more."""
HIGHEST_RATE = 1500 * MEGAHERTZ
GPU_CLOCKS = {"core_freq": CORE, "v3d_freq": V3D_CLOCK, "h264_freq": H264, "isp_freq": ISP}
"""Keys of config.txt, in MHz; `gpu_freq` stands for all of them."""


def rates_at_start(
    board: Board, config: Config, reporter: Reporter, slow_uart: bool = False
) -> dict[int, int]:
    """Hertz of each clock. slow_uart: whether the firmware is older than September 2016."""
    uart = FORMER_UART if slow_uart and board.chip != "bcm2837" else board.uart_clock
    rates = {
        EMMC: 250_000_000,
        UART: config.integer("init_uart_clock", uart),
        ARM: board.arm_clock,
        CORE: board.core_clock,
        V3D_CLOCK: board.v3d_clock,
        H264: board.v3d_clock,
        ISP: board.v3d_clock,
        SDRAM: 450_000_000,
        PIXEL: 148_500_000,
        PWM: 100_000_000,
        HDMI_STATE: 163_682_864,
        VEC: 108_000_000,
    }
    everything = _megahertz("gpu_freq", config, reporter)
    for key, clock in GPU_CLOCKS.items():
        rate = _megahertz(key, config, reporter) or everything
        rates[clock] = rate or rates[clock]
    return rates


def _megahertz(key: str, config: Config, reporter: Reporter) -> int:
    """Hertz that config.txt asks for; 0 if it does not, or for something impossible."""
    if key not in config.values:
        return 0
    rate = config.integer(key) * MEGAHERTZ
    if 0 < rate <= HIGHEST_RATE:
        return rate
    highest = HIGHEST_RATE // MEGAHERTZ
    text = f"{key}={config.values[key][:20]!r} is invalid: the range is 1 to {highest} MHz"
    reporter.report("BOOT-010", text, block="firmware")
    return 0
