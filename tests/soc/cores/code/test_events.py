"""What wakes a core from its wfe, and what does not."""

import struct
from pathlib import Path

import pytest

from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS
from vc4lab.soc.clock import Clock
from vc4lab.soc.cores.generic_timer import GenericTimer
from vc4lab.soc.machine import Machine
from vc4lab.soc.native import SliceCounter
from vc4lab.soc.slices.run_end import Stop
from vc4lab.soc.states.state import load_state, save_state

KERNEL = Path(__file__).parents[2] / "kernels64" / "events.img"
SENT, EXCLUSIVE, STREAM, UNSENT_ADDRESS, LOCAL = 1, 2, 4, 8, 16
MAILBOX = (
    0xE3A00101,  # mov r0, #0x40000000
    0xE28F1008,  # adr r1, 1f
    0xE580109C,  # str r1, [r0, #0x9c]
    0xE320F000,  # nop; a test puts sev here
    0xEAFFFFFE,  # b .
    0xE3A0A04D,  # 1: mov r10, #77
    0xEAFFFFFE,  # b .
)


def machine(tmp_path, mode: int, **options) -> Machine:
    image = bytearray(KERNEL.read_bytes())
    struct.pack_into("<I", image, 4, mode)
    (tmp_path / "kernel8.img").write_bytes(image)
    return Machine(tmp_path, "pi3", **options)


def wakes(tmp_path, mode: int, **options) -> bool:
    """Whether core 1 has seen the word when the program is at its end."""
    started = machine(tmp_path, mode, **options)
    assert started.run(seconds=0.01).reason in (Stop.HALTED, Stop.SECONDS)
    return started.cores[1].register(20) == 77


def test_a_word_in_memory_wakes_no_core(tmp_path):
    assert not wakes(tmp_path, 0)


@pytest.mark.parametrize("mode", [SENT, STREAM, EXCLUSIVE | LOCAL])
def test_what_wakes_a_core(tmp_path, mode):
    assert wakes(tmp_path, mode)


def test_a_local_event_is_taken_once(tmp_path):
    started = machine(tmp_path, LOCAL)
    started.run(seconds=0.01)
    assert started.cores[1].register(21) == 2


def test_forgiving_lets_a_core_look(tmp_path):
    assert wakes(tmp_path, 0, forgiving=True)


def test_the_stream_has_its_period():
    """Bit 8 of a counter of 19.2 MHz rises each 512 ticks, first after 256, and falls between."""
    clock = Clock(SliceCounter(), 1)
    timer = GenericTimer(clock, lambda: None)
    assert timer.next_in_stream() is None
    timer.streams = [0x84, 0]
    assert timer.next_in_stream() == -(-256 * 625 // 12)
    clock.skip(timer.next_in_stream())
    assert timer.next_in_stream() == pytest.approx(512 * 625 / 12, abs=60)
    timer.streams = [0x8C, 0]
    assert timer.next_in_stream() == pytest.approx(256 * 625 / 12, abs=60)
    timer.streams = [0x84, 0x14]
    assert timer.next_in_stream() < 4 * 625 // 12 + 60
    timer.write_prescaler(0)
    assert timer.next_in_stream() is None


def test_the_address_of_a_parked_core_needs_an_event(tmp_path):
    started = machine(tmp_path, UNSENT_ADDRESS)
    result = started.run()
    assert result.reason is Stop.HALTED
    assert len(started.processors.running) == 1
    [told] = started.reporter.items
    assert told.code == "SOC-120"
    assert "core 1" in told.message
    assert "0xe0" in told.message
    forgiven = machine(tmp_path, UNSENT_ADDRESS, forgiving=True)
    forgiven.run(seconds=0.01)
    assert len(forgiven.processors.running) == 2
    assert not forgiven.reporter.items


def mailed(tmp_path, sends: bool, **options) -> Machine:
    words = list(MAILBOX)
    if sends:
        words[3] = 0xE320F004
    (tmp_path / "kernel7.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
    started = Machine(tmp_path, "pi2", **options)
    assert started.run().reason is Stop.HALTED
    return started


def test_a_mailbox_needs_an_event(tmp_path):
    """The stub since July 2017; older firmware looked again and again."""
    asleep = mailed(tmp_path, sends=False)
    assert asleep.cores[1].register(10) == 0
    assert [item.code for item in asleep.reporter.items] == ["SOC-120"]
    assert asleep.local_bus.read(0xDC, 4) == 0x8014, "the stub has not taken it"
    polling = DEFAULT_UNKNOWNS.with_(parked_cores="polling")
    for sends, options in (
        (True, {}),
        (False, {"firmware": "2015"}),
        (False, {"forgiving": True}),
        (False, {"unknowns": polling}),
    ):
        started = mailed(tmp_path, sends, **options)
        assert started.cores[1].register(10) == 77
        assert started.local_bus.read(0xDC, 4) == 0
        assert not started.reporter.items


@pytest.mark.parametrize("mode", [SENT, STREAM])
def test_a_core_asleep_in_a_saved_state(tmp_path, mode):
    whole = machine(tmp_path, mode)
    whole.run(seconds=60e-6)
    save_state(whole, tmp_path / "state")
    whole.run(seconds=0.001)
    again = machine(tmp_path, mode)
    load_state(again, tmp_path / "state")
    again.run(seconds=0.001)
    assert again.cores[1].register(20) == 77
    assert again.cores[1].register(21) == whole.cores[1].register(21)
    assert again.clock.now == whole.clock.now


def test_cores_in_wfe_cost_a_turn_for_what_wakes_them(tmp_path):
    """Four timers of 1 kHz whose interrupts end with sev; each core sleeps in between."""
    image = Path(__file__).parents[2] / "kernels" / "four_timers.img"
    started = Machine(image, "pi2")
    assert started.run(seconds=0.2).reason is Stop.SECONDS
    for cpu in started.cores:
        assert cpu.register(7) == pytest.approx(200, abs=3)
    assert started.turns.slices < 1_500


FOUR = Path(__file__).parents[2]
LOCKS = ("kernels", "four_locks", "pi2"), ("kernels64", "four_locks", "pi3")


def four_cores(tmp_path, folder, name, board, native=True) -> Machine:
    wide = folder == "kernels64"
    image = (FOUR / folder / f"{name}.img").read_bytes()
    (tmp_path / ("kernel8.img" if wide else "kernel7.img")).write_bytes(image)
    started = Machine(tmp_path, board)
    started.turns._native._serves &= native
    return started


@pytest.mark.parametrize(("folder", "name", "board"), [*LOCKS, ("kernels", "four_locks", "pi3")])
def test_cores_that_share_a_lock(tmp_path, folder, name, board):
    """Each is interrupted 2000 times a second, and counts once for that under a lock."""
    started = four_cores(tmp_path, folder, name, board)
    assert started.run(seconds=0.1).reason is Stop.SECONDS
    wide = started.cores[0].WIDE
    counts = [cpu.register(20 if wide else 8) for cpu in started.cores]
    assert counts == pytest.approx([200] * 4, abs=2)
    shared = started.cores[0].register(11)
    assert started.memory.u32(shared) == pytest.approx(sum(counts), abs=4)
    assert started.turns.slices < 2_500


@pytest.mark.parametrize(
    ("folder", "name", "board"), [*LOCKS, ("kernels", "poll_company", "pi2"),
                                  ("kernels", "four_timers", "pi2")]
)  # fmt: skip
def test_native_turns_are_those_of_python(tmp_path, folder, name, board):
    def end(native: bool):
        started = four_cores(tmp_path, folder, name, board, native)
        started.run(seconds=0.03)
        assert (started.turns.native_slices > 0) is native
        cores = [(cpu.pc, cpu.cpsr, cpu.state(), cpu.exceptions_taken) for cpu in started.cores]
        waits = [(core.asleep, core.wish, core.vain, core.event) for core in started.processors.all]
        counts = started.counter.count, started.turns.slices, started.bus.accesses
        return cores, waits, counts, started.clock.now, bytes(started.memory.view(0, 1 << 22))

    assert end(native=True) == end(native=False)


def test_timers_of_aarch64_are_set_and_read(tmp_path):
    """cntp_tval, cntp_cval and cntp_ctl, written and read; then what Python has of them."""
    words = (
        0xD2807D00,  # mov x0, #1000
        0xD51BE200,  # msr cntp_tval_el0, x0
        0xD53BE241,  # mrs x1, cntp_cval_el0
        0xD53BE202,  # mrs x2, cntp_tval_el0
        0x92800003,  # mov x3, #-1
        0xD51BE343,  # msr cntv_cval_el0, x3
        0xD53BE344,  # mrs x4, cntv_cval_el0
        0xD2800065,  # mov x5, #3
        0xD51BE325,  # msr cntv_ctl_el0, x5
        0xD53BE326,  # mrs x6, cntv_ctl_el0
        0xD51BE33F,  # msr cntv_ctl_el0, xzr
        0xD51BE23F,  # msr cntp_ctl_el0, xzr
        0xD53BE227,  # mrs x7, cntp_ctl_el0
        0x14000000,  # b .
    )
    (tmp_path / "kernel8.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
    started = Machine(tmp_path, "pi3")
    assert started.run(seconds=0.001).reason is Stop.HALTED
    register = started.cores[0].register
    timer = started.cores[0].links.timer
    assert 990 <= register(2) <= 1000 <= register(1)
    assert register(4) == (1 << 64) - 1
    assert (register(6), register(7)) == (3, 0)
    assert timer.settings == ([0, 0, 0], [register(1), (1 << 64) - 1, 0])


ENTER_THUMB = struct.pack("<2I", 0xE28F0001, 0xE12FFF10)
"""add r0, pc, #1; bx r0"""
THUMB_WAITS = struct.pack("<5H", 0xBF20, 0x2401, 0xBF20, 0x2402, 0xE7FE)
"""wfe; movs r4, #1; wfe; movs r4, #2; b ."""
ARM_WAITS = struct.pack("<5I", 0xE320F002, 0xE3A04001, 0xE320F002, 0xE3A04002, 0xEAFFFFFE)
LOCAL_EVENTS = {
    "Thumb": ENTER_THUMB + struct.pack("<2H", 0x2400, 0xBF50) + THUMB_WAITS,
    "ARM": struct.pack("<2I", 0xE3A04000, 0xE320F005) + ARM_WAITS,
}


def waits_passed(tmp_path, image: bytes, board: str) -> int:
    """How many wfe a program came through."""
    (tmp_path / "local.img").write_bytes(image)
    started = Machine(tmp_path / "local.img", board)
    started.run(seconds=0.01)
    return started.cpu.register(4)


@pytest.mark.parametrize(("board", "passes"), [("pi2", 0), ("pi3", 1)])
@pytest.mark.parametrize("state", LOCAL_EVENTS)
def test_sevl_is_an_event_where_the_core_knows_it(tmp_path, state, board, passes):
    assert waits_passed(tmp_path, LOCAL_EVENTS[state], board) == passes


@pytest.mark.parametrize("half", [0xBF40, 0xBF50])
def test_what_looks_like_a_thumb_event_in_arm_code_is_none(tmp_path, half):
    """mov r11, #256 and mov r11, #320"""
    image = struct.pack("<2I", 0xE3A04000, 0xE3A00000 | half) + ARM_WAITS
    assert waits_passed(tmp_path, image, "pi3") == 0
