"""Property tags of power, clocks, voltage, temperature and the QPUs."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.soc.boot.clock_rates import HDMI_STATE, PIXEL, VEC
from vc4lab.soc.devices.power import TEMPERATURE
from vc4lab.soc.videocore.properties import tag
from vc4lab.soc.videocore.videocore import DOMAINS, VideoCore

ON, ABSENT = 1, 2
LOWEST_RATE = 100_000_000
DISPLAY_CLOCKS, HIGHEST_DISPLAY_RATE = frozenset((PIXEL, HDMI_STATE, VEC)), 340_000_000
"""Programs set these to what a mode needs; HDMI 1.3 ends there."""
INVALID_VOLTAGE = 0x80000000
HOTTEST = 85_000
"""Thousandths of a degree Celsius."""
QPUS = 12
FAILURES = {"error": 0x80000000, "one": 1}
"""Answers of a failed "execute QPU": the unknown "execute_qpu_failure"."""


def _about(number: int, name: str, thing: str, what: str, value: Callable[[VideoCore, int], int]) -> None:
    """Declare a tag that is asked about a numbered thing: it gives the number and a value."""
    declare = tag(number, name, f"u32 {thing}", f"u32 {thing}, u32 {what}")
    declare(lambda vc, which: (which, value(vc, which)))


def _power_state(vc: VideoCore, device: int) -> int:
    return vc.devices[device] if device < len(vc.devices) else ABSENT


def _clock_state(vc: VideoCore, clock: int) -> int:
    return vc.clock_states.get(clock, ABSENT)


def _rate(vc: VideoCore, clock: int) -> int:
    return vc.clock_rates.get(clock, 0)


def _highest_rate(vc: VideoCore, clock: int) -> int:
    if clock in DISPLAY_CLOCKS:
        return HIGHEST_DISPLAY_RATE
    return vc.board.arm_clock if clock == 3 else _rate(vc, clock)


def _lowest_rate(vc: VideoCore, clock: int) -> int:
    return 0 if clock in DISPLAY_CLOCKS else min(LOWEST_RATE, _rate(vc, clock))


def _measured_rate(vc: VideoCore, clock: int) -> int:
    return _rate(vc, clock) if vc.clock_states.get(clock) else 0


def _voltage(_vc: VideoCore, rail: int) -> int:
    return 0 if 1 <= rail <= 4 else INVALID_VOLTAGE


_about(0x00020001, "power state", "device", "state", _power_state)
_about(0x00020002, "power timing", "device", "microseconds", lambda _vc, _device: 0)
_about(0x00030001, "clock state", "clock", "state", _clock_state)
_about(0x00030002, "clock rate", "clock", "hertz", _rate)
_about(0x00030004, "highest clock rate", "clock", "hertz", _highest_rate)
_about(0x00030007, "lowest clock rate", "clock", "hertz", _lowest_rate)
_about(0x00030047, "measured clock rate", "clock", "hertz", _measured_rate)
_about(0x00030003, "voltage", "rail", "value", _voltage)
_about(0x00030005, "highest voltage", "rail", "value", _voltage)
_about(0x00030008, "lowest voltage", "rail", "value", _voltage)
_about(0x00030006, "temperature", "sensor", "millidegrees", lambda _vc, _sensor: TEMPERATURE)
_about(0x0003000A, "highest temperature", "sensor", "millidegrees", lambda _vc, _sensor: HOTTEST)
_about(0x00030009, "turbo", "number", "level", lambda vc, _number: vc.turbo)


@tag(0x00028001, "set power state", "u32 device, u32 state", "u32 device, u32 state")
def set_power_state(vc: VideoCore, device: int, state: int) -> tuple[int, int]:
    if device < len(vc.devices):
        vc.devices[device] = state & ON
    return device, _power_state(vc, device)


@tag(0x00038001, "set clock state", "u32 clock, u32 state", "u32 clock, u32 state")
def set_clock_state(vc: VideoCore, clock: int, state: int) -> tuple[int, int]:
    vc.set_clock_state(clock, state)
    return clock, _clock_state(vc, clock)


@tag(0x00038002, "set clock rate", "u32 clock, u32 hertz, u32 skip_turbo", "u32 clock, u32 hertz")
def set_clock_rate(vc: VideoCore, clock: int, hertz: int, skip_turbo: int) -> tuple[int, int]:
    vc.set_clock_rate(clock, hertz)
    return clock, _rate(vc, clock)


@tag(0x00038003, "set voltage", "u32 rail, u32 value", "u32 rail, u32 value")
def set_voltage(vc: VideoCore, rail: int, _value: int) -> tuple[int, int]:
    return rail, _voltage(vc, rail)


@tag(0x00038009, "set turbo", "u32 number, u32 level", "u32 number, u32 level")
def set_turbo(vc: VideoCore, number: int, level: int) -> tuple[int, int]:
    vc.turbo = level & 1
    return number, vc.turbo


tag(0x00030046, "throttled", "u32 mask", "u32 bits")(lambda vc, mask: 0)
tag(0x00038042, "SDHOST clock", "u32 hertz", "u32 hertz, u32 real, u32 turbo")(
    lambda vc, hertz: (hertz, hertz, hertz)
)


@tag(0x00030030, "power domain", "u32 domain, u32 state", "u32 domain, u32 state")
def domain(vc: VideoCore, number: int, _state: int) -> tuple[int, int]:
    return number, vc.domains[number] if 0 < number <= DOMAINS else 0


@tag(0x00038030, "set power domain", "u32 domain, u32 state", "u32 domain, u32 state")
def set_domain(vc: VideoCore, number: int, state: int) -> tuple[int, int]:
    vc.set_domain(number, state)
    found: tuple[int, int] = domain(vc, number, state)
    return found


@tag(0x00030012, "enable QPU", "u32 enable", "u32 status")
def enable_qpu(vc: VideoCore, enable: int) -> int:
    vc.enable_qpu(bool(enable & 1))
    return 0


@tag(0x00030011, "execute QPU", "u32 count, u32 control, u32 noflush, u32 timeout", "u32 status")
def execute_qpu(vc: VideoCore, count: int, control: int, noflush: int, timeout: int) -> int:
    failed = FAILURES[vc.unknowns["execute_qpu_failure"]]
    if not 0 < count <= QPUS or not vc.memory.contains(control, 8 * count):
        vc.reporter.report(
            "SOC-011", f"execute QPU with {count} programs and their list at 0x{control:08x}", block="mailbox"
        )
        return failed
    if vc.v3d.works:
        vc.reporter.report(
            "SOC-081",
            "execute QPU makes the firmware start programs while the program's own lists or user "
            f"programs are still running ({vc.v3d.waiting or 'they run'})",
            block="mailbox",
        )
    pairs = [(vc.memory.u32(control + 8 * n), vc.memory.u32(control + 8 * n + 4)) for n in range(count)]
    return 0 if vc.v3d.run_user_programs(pairs, flush=not noflush) else failed


@tag(0x00030010, "execute code", "u32 function, u32 r0, u32 r1, u32 r2, u32 r3, u32 r4, u32 r5", "u32 r0")
def execute_code(vc: VideoCore, function: int, *arguments: int) -> int | None:
    return vc.execute_code(function, arguments)
