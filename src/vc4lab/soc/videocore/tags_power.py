"""Property tags of power, clocks, voltage, temperature and the QPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.soc.videocore.clock_rates import HIGHEST_RATE
from vc4lab.soc.videocore.properties import tag
from vc4lab.soc.videocore.videocore import DOMAINS

if TYPE_CHECKING:
    from vc4lab.soc.videocore.videocore import VideoCore

ON, ABSENT = 1, 2
LOWEST_RATE = 100_000_000
INVALID_VOLTAGE = 0x80000000
TEMPERATURE, HOTTEST = 42_236, 85_000
"""Thousandths of a degree Celsius."""
QPUS = 12
FAILURES = {"error": 0x80000000, "one": 1}
"""Answers of a failed "execute QPU": the unknown "execute_qpu_failure"."""


@tag(0x00020001, "power state", "u32 device", "u32 device, u32 state")
def power_state(vc: VideoCore, device: int) -> tuple[int, int]:
    return device, vc.devices[device] if device < len(vc.devices) else ABSENT


@tag(0x00020002, "power timing", "u32 device", "u32 device, u32 microseconds")
def power_timing(vc: VideoCore, device: int) -> tuple[int, int]:
    return device, 0


@tag(0x00028001, "set power state", "u32 device, u32 state", "u32 device, u32 state")
def set_power_state(vc: VideoCore, device: int, state: int) -> tuple[int, int]:
    if device >= len(vc.devices):
        return device, ABSENT
    vc.devices[device] = state & ON
    return device, state & ON


@tag(0x00030001, "clock state", "u32 clock", "u32 clock, u32 state")
def clock_state(vc: VideoCore, clock: int) -> tuple[int, int]:
    return clock, vc.clock_states.get(clock, ABSENT)


@tag(0x00038001, "set clock state", "u32 clock, u32 state", "u32 clock, u32 state")
def set_clock_state(vc: VideoCore, clock: int, state: int) -> tuple[int, int]:
    vc.set_clock_state(clock, state)
    return clock_state(vc, clock)


@tag(0x00030002, "clock rate", "u32 clock", "u32 clock, u32 hertz")
def clock_rate(vc: VideoCore, clock: int) -> tuple[int, int]:
    return clock, vc.clock_rates.get(clock, 0)


@tag(0x00038002, "set clock rate", "u32 clock, u32 hertz, u32 skip_turbo", "u32 clock, u32 hertz")
def set_clock_rate(vc: VideoCore, clock: int, hertz: int, skip_turbo: int) -> tuple[int, int]:
    if clock in vc.clock_rates and hertz:
        vc.clock_rates[clock] = min(hertz, HIGHEST_RATE)
    return clock_rate(vc, clock)


@tag(0x00030004, "highest clock rate", "u32 clock", "u32 clock, u32 hertz")
def highest_rate(vc: VideoCore, clock: int) -> tuple[int, int]:
    return clock, vc.board.arm_clock if clock == 3 else vc.clock_rates.get(clock, 0)


@tag(0x00030007, "lowest clock rate", "u32 clock", "u32 clock, u32 hertz")
def lowest_rate(vc: VideoCore, clock: int) -> tuple[int, int]:
    return clock, min(LOWEST_RATE, vc.clock_rates.get(clock, 0))


@tag(0x00030047, "measured clock rate", "u32 clock", "u32 clock, u32 hertz")
def measured_rate(vc: VideoCore, clock: int) -> tuple[int, int]:
    return clock, vc.clock_rates.get(clock, 0) if vc.clock_states.get(clock) else 0


def _voltage(vc: VideoCore, number: int, *_value: int) -> tuple[int, int]:
    return number, 0 if 1 <= number <= 4 else INVALID_VOLTAGE


for _number, _name in (
    (0x00030003, "voltage"),
    (0x00030005, "highest voltage"),
    (0x00030008, "lowest voltage"),
):
    tag(_number, _name, "u32 rail", "u32 rail, u32 value")(_voltage)
tag(0x00038003, "set voltage", "u32 rail, u32 value", "u32 rail, u32 value")(_voltage)


@tag(0x00030006, "temperature", "u32 sensor", "u32 sensor, u32 millidegrees")
def temperature(vc: VideoCore, sensor: int) -> tuple[int, int]:
    return sensor, TEMPERATURE


@tag(0x0003000A, "highest temperature", "u32 sensor", "u32 sensor, u32 millidegrees")
def highest_temperature(vc: VideoCore, sensor: int) -> tuple[int, int]:
    return sensor, HOTTEST


@tag(0x00030009, "turbo", "u32 number", "u32 number, u32 level")
def turbo(vc: VideoCore, number: int) -> tuple[int, int]:
    return number, vc.turbo


@tag(0x00038009, "set turbo", "u32 number, u32 level", "u32 number, u32 level")
def set_turbo(vc: VideoCore, number: int, level: int) -> tuple[int, int]:
    vc.turbo = level & 1
    return number, vc.turbo


@tag(0x00030046, "throttled", "u32 mask", "u32 bits")
def throttled(vc: VideoCore, mask: int) -> int:
    return 0


@tag(0x00038042, "SDHOST clock", "u32 hertz", "u32 hertz, u32 real, u32 turbo")
def sdhost_clock(vc: VideoCore, hertz: int) -> tuple[int, int, int]:
    return hertz, hertz, hertz


@tag(0x00030030, "power domain", "u32 domain, u32 state", "u32 domain, u32 state")
def domain(vc: VideoCore, number: int, _state: int) -> tuple[int, int]:
    return number, vc.domains[number] if 0 < number <= DOMAINS else 0


@tag(0x00038030, "set power domain", "u32 domain, u32 state", "u32 domain, u32 state")
def set_domain(vc: VideoCore, number: int, state: int) -> tuple[int, int]:
    vc.set_domain(number, state)
    return domain(vc, number, state)


@tag(0x00030012, "enable QPU", "u32 enable", "u32 status")
def enable_qpu(vc: VideoCore, enable: int) -> int:
    vc.enable_qpu(bool(enable & 1))
    return 0


@tag(0x00030011, "execute QPU", "u32 count, u32 control, u32 noflush, u32 timeout", "u32 status")
def execute_qpu(vc: VideoCore, count: int, control: int, noflush: int, timeout: int) -> int:
    failed = FAILURES[vc.unknowns["execute_qpu_failure"]]
    if not 0 < count <= QPUS or not vc.memory.contains(control, 8 * count):
        vc.reporter.report(
            "SOC-011",
            f"execute QPU with {count} programs and their list at 0x{control:08x}",
            block="mailbox",
        )
        return failed
    if vc.v3d.works:
        vc.reporter.report(
            "SOC-081",
            "execute QPU makes the firmware start programs while the program's own lists or user "
            f"programs are still running ({vc.v3d.waiting or 'they run'})",
            block="mailbox",
        )
    pairs = [
        (vc.memory.u32(control + 8 * n), vc.memory.u32(control + 8 * n + 4)) for n in range(count)
    ]
    return 0 if vc.v3d.run_user_programs(pairs, flush=not noflush) else failed


@tag(
    0x00030010,
    "execute code",
    "u32 function, u32 r0, u32 r1, u32 r2, u32 r3, u32 r4, u32 r5",
    "u32 r0",
)
def execute_code(vc: VideoCore, function: int, *arguments: int) -> int | None:
    return vc.execute_code(function, arguments)
