"""A guest that waits sleeps in `--realtime`: wake-ups are counted, results are those of any run."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from vc4lab.soc.cores.steady import stores_nothing
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine
from vc4lab.soc.result import Stop
from vc4lab.soc.slices.pace import Pace

SECONDS = 4
LISTEN = (  # the receive interrupt of the PL011
    0xE3800602,  # orr r0, r0, #0x200000
    0xE3800A01,  # orr r0, r0, #0x1000
    0xE3A01010,  # mov r1, #0x10
    0xE5801038,  # str r1, [r0, #0x38]
    0xE3C00602,  # bic r0, r0, #0x200000
    0xE2200CA2,  # eor r0, r0, #0xa200: now the interrupt controller
    0xE3A01402,  # mov r1, #0x2000000
    0xE5801014,  # str r1, [r0, #0x14]
    0xE10F1000,  # mrs r1, cpsr
    0xE3C11080,  # bic r1, r1, #0x80
    0xE121F001,  # msr cpsr_c, r1
)
PI1 = (0xE3A00202, *LISTEN)  # mov r0, #0x20000000
PI2 = (0xE3A0043F, *LISTEN[:8])  # mov r0, #0x3f000000
WFI = (0xE320F003, 0xEAFFFFFD)  # 1: wfi; b 1b
OTHERS = (  # cores 1 to 3 begin after the next two instructions
    0xE3A04101,  # mov r4, #0x40000000
    0xE28F5014,  # add r5, pc, #20
    0xE584509C,  # str r5, [r4, #0x9c]
    0xE58450AC,  # str r5, [r4, #0xac]
    0xE58450BC,  # str r5, [r4, #0xbc]
    0xE320F004,  # sev
)
WFE = (0xE320F002, 0xEAFFFFFD)  # 1: wfe; b 1b
PI3 = (
    0xD2A7E400,  # mov x0, #0x3f200000
    0xF2820000,  # movk x0, #0x1000
    0x52800201,  # mov w1, #0x10
    0xB9003801,  # str w1, [x0, #0x38]
    0xD2A7E000,  # mov x0, #0x3f000000
    0xF2964000,  # movk x0, #0xb200
    0x52A04001,  # mov w1, #0x2000000
    0xB9001401,  # str w1, [x0, #0x14]
    0xD2B00009,  # mov x9, #0x80000000
    0x91004129,  # add x9, x9, #0x10
    0xD51C1109,  # msr hcr_el2, x9
    0xD50342FF,  # msr daifclr, #2
)
IDLE = {
    "wfi": ("pi1", (*PI1, *WFI)),
    "branch to self": ("pi1", (*PI1, 0xEAFFFFFE)),
    "wfe": ("pi1", (*PI1, *WFE)),
    "watched word": ("pi1", (*PI1, 0xE5931000, 0xE3510000, 0x0AFFFFFC)),  # ldr; cmp; beq
    "four in wfi": ("pi2", (*PI2, *OTHERS, *WFI, *WFI)),
    "three in wfe": ("pi2", (*PI2, *OTHERS, *WFI, *WFE)),
    "wfi, AArch64": ("pi3", (*PI3, 0xD503207F, 0x17FFFFFF)),
    "wfe, AArch64": ("pi3", (*PI3, 0xD503205F, 0x17FFFFFF)),
    "branch to self, AArch64": ("pi3", (*PI3, 0x14000000)),
    "watched word, AArch64": ("pi3", (*PI3, 0xB9400061, 0x34FFFFE1)),  # ldr; cbz
}
STORING = (*PI1, 0xE320F002, 0xE52D1004, 0xE49D1004, 0xEAFFFFFB)  # wfe; push; pop; b
TIMER = (
    0xE3A00202,  # mov r0, #0x20000000
    0xE2802A0B,  # add r2, r0, #0xb000
    0xE3A01002,  # mov r1, #2
    0xE5821210,  # str r1, [r2, #0x210]
    0xE2800A03,  # add r0, r0, #0x3000
    0xE5903004,  # ldr r3, [r0, #4]
    0xE2833819,  # 1: add r3, r3, #0x190000
    0xE5803010,  # str r3, [r0, #0x10]
    0xE320F003,  # wfi
    0xE5801000,  # str r1, [r0]
    0xEAFFFFFA,  # b 1b
)
TICKS_A_SECOND = 1_000_000 / 0x190000


class Wall:
    """A clock that only goes on during a sleep."""

    def __init__(self) -> None:
        self.now = 5_000_000_000
        self.on_sleep: Callable[[float, list[int]], float] = lambda seconds, _descriptors: seconds

    def sleep(self, seconds: float, descriptors: list[int]) -> None:
        self.now += round(self.on_sleep(seconds, descriptors) * 1e9)

    @property
    def pace(self) -> Pace:
        return Pace(lambda: self.now, self.sleep)


Make = Callable[..., Machine]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def machine(board: str, words: tuple[int, ...], port: SerialPort | None = None) -> Machine:
        image = tmp_path / {"pi1": "kernel.img", "pi2": "kernel7.img", "pi3": "kernel8.img"}[board]
        image.write_bytes(struct.pack(f"<{len(words)}I", *words))
        made = Machine(image, board, serial=port)
        framebuffer = made.videocore.framebuffer
        framebuffer.change(width=64, height=32, depth=32)
        framebuffer.allocate()
        return made

    return machine


def look(machine: Machine) -> tuple[object, ...]:
    return (
        machine.clock.now,
        machine.counter.count,
        machine.clock.events_run,
        machine.vsyncs,
        machine.frames.count,
        [core.cpu.state() for core in machine.processors.all],
    )


@pytest.mark.parametrize("name", IDLE)
def test_an_idle_guest_is_woken_once_a_second(make, name):
    plain, paced = make(*IDLE[name]), make(*IDLE[name])
    wall = Wall()
    paced.pace = pace = wall.pace
    began = wall.now
    for seconds in (0.5, SECONDS - 0.5):
        machines = plain, paced
        assert [m.run(seconds=seconds).reason for m in machines] == [Stop.SECONDS] * 2
        assert look(plain) == look(paced)
    assert pace.sleeps <= SECONDS + 8, "some vsyncs at the beginning of each run, then once a second"
    assert wall.now - began == pytest.approx(SECONDS * 1e9, abs=3e7)
    assert paced.vsyncs == SECONDS * 60
    assert paced.turns.slices < 150


def test_a_loop_that_stores_is_executed_every_time(make):
    plain, paced = make("pi1", STORING), make("pi1", STORING)
    paced.pace = Wall().pace
    for machine in (plain, paced):
        machine.run(seconds=1)
        assert machine.turns.slices >= 60
    assert look(plain) == look(paced)


def test_wake_ups_follow_the_timer(make):
    machine = make("pi1", TIMER)
    machine.pace = pace = Wall().pace
    machine.run(seconds=1)
    before = pace.sleeps
    machine.run(seconds=50)
    ticks = 50 * TICKS_A_SECOND
    assert ticks <= pace.sleeps - before <= 6 * ticks
    assert machine.vsyncs == 51 * 60


POLLING = (
    0xE3A00202,  # mov r0, #0x20000000
    0xE3800A03,  # orr r0, r0, #0x3000
    0xE5901004,  # 1: ldr r1, [r0, #4]
    0xE3510101,  # cmp r1, #0x40000000
    0x3AFFFFFC,  # blo 1b
    0xEAFFFFFE,  # b .
)
PRINTING = (
    0xE3A00202,  # mov r0, #0x20000000
    0xE3800602,  # orr r0, r0, #0x200000
    0xE3800A01,  # orr r0, r0, #0x1000
    0xE3A01C03,  # mov r1, #0x300
    0xE3811001,  # orr r1, r1, #1
    0xE5801030,  # str r1, [r0, #0x30]
    0xE5801000,  # 1: str r1, [r0]
    0xE3A02601,  # mov r2, #0x100000
    0xE2522001,  # 2: subs r2, r2, #1
    0x1AFFFFFD,  # bne 2b
    0xEAFFFFFA,  # b 1b
)


@pytest.mark.parametrize(("words", "most"), [(POLLING, 25), (PRINTING, 61)])
def test_a_program_that_polls_unseen_is_woken_less_often(make, words, most):
    plain, paced = make("pi1", words), make("pi1", words)
    wall = Wall()
    paced.pace = pace = wall.pace
    began = wall.now
    for machine in (plain, paced):
        machine.run(seconds=1)
    before = pace.sleeps
    for machine in (plain, paced):
        machine.run(seconds=1)
    assert look(plain) == look(paced)
    assert most // 2 < pace.sleeps - before <= most
    assert wall.now - began == pytest.approx(paced.clock.now, abs=6e7)


def test_a_key_wakes_a_program_that_polls_for_it(make):
    listening = (
        0xE3A00202,  # mov r0, #0x20000000
        0xE3800602,  # orr r0, r0, #0x200000
        0xE3800A01,  # orr r0, r0, #0x1000
        0xE5901018,  # 1: ldr r1, [r0, #0x18]
        0xE3110010,  # tst r1, #0x10
        0x1AFFFFFC,  # bne 1b
        0xEAFFFFFE,  # b .
    )
    wall = Wall()
    watched: list[list[int]] = []
    wall.on_sleep = lambda seconds, descriptors: watched.append(descriptors) or seconds
    port = SerialPort(source=lambda: b"x" if len(watched) > 60 else b"", descriptors=lambda: [7])
    machine = make("pi1", listening, port)
    machine.pace = wall.pace
    result = machine.run(seconds=10)
    assert result.reason is Stop.HALTED
    assert watched[5] == []
    assert watched[-1] == [7], "calm for a while: typing ends the sleep"


@pytest.mark.parametrize("heard", [True, False])
def test_the_arm_timer_wakes_who_listens(make, heard):
    words = (
        *PI1,
        0xE3800B01,  # orr r0, r0, #0x400: the timer, now 0xb600 - 0x200
        0xE2400C02,  # sub r0, r0, #0x200
        0xE3A01C08,  # mov r1, #0x800
        0xE5801000,  # str r1, [r0]
        0xE3A010A2 if heard else 0xE3A01082,  # mov r1, #0xa2 or #0x82
        0xE5801008,  # str r1, [r0, #8]
        0xE2400C02,  # sub r0, r0, #0x200
        0xE3A01001,  # mov r1, #1
        0xE5801018,  # str r1, [r0, #0x18]
        0xE10F1000,  # mrs r1, cpsr
        0xE3811080,  # orr r1, r1, #0x80
        0xE121F001,  # msr cpsr_c, r1
        0xE320F003,  # 1: wfi
        0xE580120C,  # str r1, [r0, #0x20c]
        0xEAFFFFFC,  # b 1b
    )
    machine = make("pi1", words)
    machine.pace = pace = Wall().pace
    machine.run(seconds=2)
    assert machine.clock.events_run > 1500
    assert (machine.turns.slices > 1500) == heard
    assert (pace.sleeps > 40) == heard


def test_a_key_ends_the_rest_at_the_moment_it_comes(make):
    wall = Wall()
    came: list[tuple[float, float]] = []
    typed = [b""]

    def source() -> bytes:
        data, typed[0] = typed[0], b""
        if data:
            came.append((machine.seconds, (wall.now - began) / 1e9))
        return data

    def sleep(seconds: float, descriptors: list[int]) -> float:
        if descriptors and not came and wall.now - began > 1e9:
            typed[0] = b"x"
            return 0.3
        return seconds

    port = SerialPort(source=source, descriptors=lambda: [7])
    machine = make("pi1", (*PI1, *WFI), port)
    wall.on_sleep = sleep
    machine.pace = wall.pace
    began = wall.now
    machine.run(seconds=3)
    ((guest, real),) = came
    assert guest == pytest.approx(real, abs=0.02)
    assert guest % 1 > 0.25
    assert port.watches() == [], "it was not read: no use in hearing of it again"


def test_a_guest_that_waits_for_a_key_does_not_hang(make):
    machine = make("pi1", (*PI1, *WFI), SerialPort(source=lambda: b""))
    assert machine.run(seconds=0.1).reason is Stop.SECONDS
    ends = iter(range(60 * 12))
    machine.on_vsync = lambda: None if next(ends, None) is not None else machine.end("enough")
    assert machine.run().message == "enough"
    deaf = make("pi1", (*PI1, *WFI))
    assert deaf.run().reason is Stop.HANG


def test_a_still_picture_is_not_looked_at_again(make):
    machine = make("pi1", (*PI1, *WFI))
    machine.memory.write(machine.videocore.framebuffer.address, b"picture")
    looks = []
    look_closer = machine.frames._look
    machine.frames._look = lambda: looks.append(1) or look_closer()
    machine.run(seconds=1)
    assert machine.frames.count == 59
    assert len(looks) < 5


def test_every_frame_that_is_wanted_comes_in_time(make):
    machine = make("pi1", (*PI1, *WFI))
    machine.memory.write(machine.videocore.framebuffer.address, b"picture")
    wall = Wall()
    machine.pace = wall.pace
    began = wall.now
    assert machine.run(frames=30).reason is Stop.FRAMES
    assert wall.now - began == pytest.approx(machine.clock.now, abs=2e7)


@pytest.mark.parametrize(
    ("words", "harmless"),
    [
        ((0xE1A00000, 0xE5931000, 0xE3510000, 0x0AFFFFFC, 0xEB000000, 0xE320F002), True),
        ((0xE1D310B0, 0xE1931F9F, 0xE8BD000F, 0xE12FFF1E, 0xF57FF04F, 0xE10F1000), True),
        ((0xE3001234, 0xE3401234, 0xE7D31002, 0xE59F1000, 0xEE070F9A), True),
        ((0xE5831000,), False),  # str
        ((0xE1C310B0,), False),  # strh
        ((0xE1831F92,), False),  # strex
        ((0xE92D4000,), False),  # push
        ((0xE1032091,), False),  # swp
        ((0xE121F001,), False),  # msr
        ((0xE328F101,), False),  # msr with an immediate
        ((0xED831B00,), False),  # vstr
        ((0xEF000000,), False),  # svc
        ((0xEE070F15,), False),  # instruction cache maintenance
        ((0xF4432A0F,), False),  # vst1
    ],
)
def test_what_stores_nothing(words, harmless):
    assert all(stores_nothing(word, wide=False) == harmless for word in words)


@pytest.mark.parametrize(
    ("words", "harmless"),
    [
        ((0xB9400061, 0x34FFFFE1, 0x14000000, 0x54000000, 0xD503205F, 0xD5033F9F), True),
        ((0x91000421, 0xAA0103E0, 0xD65F03C0, 0xF8408441, 0xF8626820, 0x88DFFC41), True),
        ((0xC85FFC41,), True),  # ldaxr
        ((0xB9000061,), False),  # str
        ((0xF8008441,), False),  # str with writeback
        ((0xF8226820,), False),  # str with a register offset
        ((0xA9BF7BFD,), False),  # stp
        ((0x8802FC41,), False),  # stlxr
        ((0x3D800020,), False),  # str of a vector register
        ((0xD4000001,), False),  # svc
        ((0xD50B7421,), False),  # dc zva
        ((0xD51C1109,), False),  # msr
        ((0xD53BE020,), False),  # mrs of the counter
    ],
)
def test_what_stores_nothing_in_64_bits(words, harmless):
    assert all(stores_nothing(word, wide=True) == harmless for word in words)
