"""Several cores: release by mailbox, shared memory, interrupts of their own, determinism."""

import struct
from pathlib import Path

import pytest

from vc4lab.soc.board_unknowns import DEFAULT_UNKNOWNS
from vc4lab.soc.cores.code.code_pages import forget_addresses
from vc4lab.soc.cores.cpu import TRANSLATIONS
from vc4lab.soc.cores.exceptions.exceptions import ArmException
from vc4lab.soc.cores.exceptions.outcome import UnhandledException
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.states.state import load_state, save_state

KERNELS = Path(__file__).parents[1] / "kernels"


def test_four_cores_add_to_one_word(boot):
    """The kernel uses ldrex without a cache, which works here if the board is forgiving."""
    machine = boot("multicore", forgiving=True)
    result = machine.run()
    assert result.reason is Stop.HALTED
    assert machine.cores[0].register(10) == 4000
    assert [machine.cores[n].register(9) for n in (1, 2, 3)] == [1, 2, 3]


def test_two_runs_are_the_same(boot):
    first, second = boot("multicore", forgiving=True), boot("multicore", forgiving=True)
    first.run()
    second.run()
    assert first.counter.count == second.counter.count
    assert first.clock.now == second.clock.now


def test_timer_of_a_core_and_mailbox_interrupt(boot):
    machine = boot("core_irq")
    assert machine.run().reason is Stop.HALTED
    one, two = machine.cores[:2]
    assert one.register(10) == 0xCAFE
    assert one.register(11) == 0
    assert two.register(10) == 5
    assert two.register(11) == 2
    assert one.register(6) == pytest.approx(5 * 19200, abs=400)


def test_parked_cores_stay_parked(boot):
    machine = boot("hello")
    machine.run()
    assert [cpu.pc for cpu in machine.cores[1:]] == [0, 0, 0]
    assert all(cpu.exceptions_taken == 0 for cpu in machine.cores)


def test_abort_status_and_address(boot):
    machine = boot("abort")
    assert machine.run().reason is Stop.HALTED
    r = machine.cpu.register
    translation_of_a_section = 5
    assert r(4) == 1 << 11 | translation_of_a_section
    assert r(5) == 0x34567898
    assert (r(6), r(7)) == (translation_of_a_section, 0x3456789C)
    assert (r(8), r(9)) == (translation_of_a_section, 0x45678900)


def test_thumb_instructions_count_one_each(boot):
    machine = boot("thumb")
    machine.run()
    assert machine.counter.count == pytest.approx(6000, abs=220)


def test_a_core_that_polls_its_mailbox_leaves_the_timer_to_the_other(boot):
    machine = boot("poll_company")
    turns = 0
    run = machine.turns._round

    def counted(running):
        nonlocal turns
        turns += 1
        run(running)

    machine.turns._round = counted
    assert machine.run().reason is Stop.HALTED
    one = machine.cores[1]
    assert one.register(10) == 77
    assert 20_000 <= one.register(11) < 20_500
    assert turns < 1500


def test_the_engine_forgets_addresses_once_a_frame(boot, monkeypatch):
    forgotten = []
    monkeypatch.setattr("vc4lab.soc.cores.cpu.forget_addresses", forgotten.append)
    machine = boot("wait")
    machine.run(seconds=0.1)
    assert machine.vsyncs > 4
    assert forgotten == [machine.cpu.engine] * machine.vsyncs


def test_guests_do_not_notice_that_addresses_are_forgotten(boot):
    first, second = boot("multicore", forgiving=True), boot("multicore", forgiving=True)
    first.run()
    step = second.turns.step

    def forgetful():
        for cpu in second.cores:
            forget_addresses(cpu.engine)
        step()

    second.turns.step = forgetful
    second.run()
    assert (first.counter.count, first.clock.now) == (second.counter.count, second.clock.now)
    assert second.cores[0].register(10) == 4000


def test_translated_code_is_bounded(boot):
    machine = boot("hello")
    sizes = {cpu.engine.ctl_get_tcg_buffer_size() for cpu in machine.cores}
    assert sizes == {TRANSLATIONS}
    assert len(machine.cores) * TRANSLATIONS < 150 << 20


def test_monitor_call_and_a_slower_generic_timer(boot):
    machine = boot("monitor")
    assert machine.run().reason is Stop.HALTED
    r = machine.cpu.register
    assert r(4) == 1
    assert r(5) & 0x1F == 0x13
    assert r(7) == 1_000_000
    assert r(6) == pytest.approx(1000, abs=12)


def test_a_stopped_generic_timer_never_interrupts(boot):
    machine = boot("monitor")
    machine.run()
    timer = machine.cpu.links.timer
    timer.write_prescaler(0)
    before = timer.count
    timer.write_value(0, 100)
    timer.write_control(0, 1)
    machine.clock.skip(1_000_000_000)
    assert timer.count == before
    assert not timer.level(0)
    timer.write_prescaler(1 << 31)
    machine.clock.skip(100_000)
    assert timer.level(0)


def test_waiting_for_memory_again_and_again_costs_little(boot):
    """A frame loop that watches a word which the vsync's handler writes."""
    image = (KERNELS / "memory_irq.img").read_bytes()
    three, many = (struct.pack("<I", 0xE3510000 | limit) for limit in (3, 0xCFF))
    assert image.count(three) == 1
    machine = boot(image.replace(three, many), "fake_vsync_isr=1\n")
    machine.run(seconds=1)
    assert machine.cpu.register(1) >= 59, "frames"
    assert machine.counter.count < 59 * 200_000


def test_an_exception_vector_that_cannot_be_fetched_is_a_crash(boot):
    machine = boot("hello")
    machine.memory.write(0, bytes.fromhex("feffffea") * 8)  # b .
    cpu = machine.cpu
    cpu._take(ArmException.PREFETCH_ABORT, 0x8000)
    vector = cpu.pc
    with pytest.raises(UnhandledException):
        cpu._take(ArmException.PREFETCH_ABORT, vector)


def _ticks_in_a_millisecond(machine) -> int:
    timer = machine.cpu.links.timer
    before = timer.count
    machine.clock.skip(1_000_000)
    return timer.count - before


def test_generic_timers_count_microseconds_until_a_stub_or_a_program_changes_that(boot):
    """CNTFRQ says 19.2 MHz in either case, as programs for boards know."""
    narrow = boot("monitor")
    assert narrow.local.PRESCALER == 0x06AAAAAB
    assert _ticks_in_a_millisecond(narrow) == pytest.approx(1000, abs=1)
    assert narrow.cpu.links.timer.frequency == 19_200_000
    narrow.local_bus.poke(0x08, 1 << 31)
    assert _ticks_in_a_millisecond(narrow) == 19_200
    crystal = boot("monitor", unknowns=DEFAULT_UNKNOWNS.with_(timer_prescaler="crystal"))
    assert _ticks_in_a_millisecond(crystal) == 19_200


MONITOR = (
    0xE3A00A09,  # mov r0, #0x9000
    0xEE0C0F30,  # mcr p15, 0, r0, c12, c0, 1: MVBAR
    0xEE1C6F30,  # mrc p15, 0, r6, c12, c0, 1
    0xE1600070,  # smc #0
    0xE3A05007,  # mov r5, #7
    0xEAFFFFFE,  # b .
)


def test_a_secure_program_has_its_own_monitor(tmp_path):
    """A Pi 1's program, which is never taken to HYP mode, sets MVBAR and calls the handler."""
    handler = (0xE3A04008, 0xE1B0F00E)  # mov r4, #8; movs pc, lr
    image = struct.pack(f"<{len(MONITOR)}I", *MONITOR).ljust(0x1008, b"\0")
    (tmp_path / "kernel.img").write_bytes(image + struct.pack("<2I", *handler))
    machine = Machine(tmp_path, board="zero")
    machine.run(seconds=0.001)
    register = machine.cpu.register
    assert (register(4), register(5), register(6)) == (8, 7, 0x9000)
    save_state(machine, tmp_path / "state")
    again = Machine(tmp_path, board="zero")
    load_state(again, tmp_path / "state")
    assert again.cpu.monitor_vectors == 0x9000


def test_a_framebuffer_fits_into_the_least_memory_of_the_videocore(boot):
    """The last 16 MiB of a GiB are hidden by the peripherals, where the ARM would not find it."""
    machine = boot("framebuffer", "gpu_mem=16\n")
    assert machine.videocore.arm_memory == 992 << 20
    machine.run(seconds=0.1)
    assert machine.screen.image is not None


POLLS_THE_DMA = (
    0xEE100FB0,  # mrc p15, 0, r0, c0, c0, 5
    0xE2100003,  # ands r0, r0, #3
    0x1A00000A,  # bne stop
    0xE3A0143F,  # mov r1, #0x3f000000
    0xE3811A07,  # orr r1, r1, #0x7000
    0xE3A03001,  # mov r3, #1
    0xE5813FF0,  # str r3, [r1, #0xff0]: ENABLE
    0xE3A02B01,  # mov r2, #0x400
    0xE5812004,  # str r2, [r1, #4]: CONBLK_AD
    0xE5813000,  # str r3, [r1]: CS.ACTIVE
    0xE5914000,  # 1: ldr r4, [r1]
    0xE3140001,  # tst r4, #1
    0x1AFFFFFC,  # bne 1b
    0xE3A05007,  # stop: mov r5, #7
    0xEAFFFFFE,  # b .
)


def test_who_polls_beside_cores_that_have_ended_sees_what_happened(tmp_path):
    """The end of a DMA transfer comes sooner than anything else that could wake the core."""
    image = struct.pack(f"<{len(POLLS_THE_DMA)}I", *POLLS_THE_DMA).ljust(0x400, b"\0")
    image += struct.pack("<8I", 0x110, 0x500, 0x600, 64, 0, 0, 0, 0)
    (tmp_path / "kernel7.img").write_bytes(image)
    (tmp_path / "config.txt").write_text("kernel_old=1\n")
    machine = Machine(tmp_path, board="pi2")
    result = machine.run(seconds=0.01)
    assert machine.cores[0].register(5) == 7
    assert result.reason is Stop.HALTED
    assert result.seconds < 0.001


@pytest.mark.parametrize(
    ("file", "board", "maintenance"),
    [
        ("kernel7.img", "pi2", (0xEE070F15, 0xEE070F35)),  # ICIALLU, ICIMVAU
        ("kernel8.img", "pi3", (0xD508751F, 0xD50B7520)),  # ic iallu, ic ivau
    ],
)
def test_instruction_cache_maintenance_tells_all_cores(tmp_path, file, board, maintenance):
    """What one core wrote, the others may have translated already."""
    halt = 0xEAFFFFFE if board == "pi2" else 0x14000000

    def told(words: tuple[int, ...]) -> int:
        (tmp_path / file).write_bytes(struct.pack(f"<{len(words) + 1}I", *words, halt))
        machine = Machine(tmp_path, board=board)
        calls = []
        for cpu in machine.cores:
            tell = cpu.links.code_changed
            cpu.links.code_changed = lambda tell=tell: (calls.append(1), tell())
        assert machine.run().reason is Stop.HALTED
        return len(calls)

    nothing = 0xE1A00000 if board == "pi2" else 0xD503201F
    for word in maintenance:
        assert told((word,)) - told((nothing,)) == 1


LINES_OF_A_PAGE = (
    0xD2801C00,  # mov x0, #0xe0
    0x10000001,  # adr x1, second (put in below)
    0xF9000001,  # str x1, [x0]: core 1 begins there
    0xD503209F,  # sev
    0xD2A00204,  # mov x4, #0x100000
    0xF1000484,  # subs x4, x4, #1
    0x54FFFFE1,  # b.ne the line before
    0xD2800002,  # mov x2, #lines (put in below)
    0x10000003,  # adr x3, .
    0xD50B7523,  # ic ivau, x3
    0x91010063,  # add x3, x3, #64
    0xF1000442,  # subs x2, x2, #1
    0x54FFFFA1,  # b.ne three lines before
    0x14000000,  # b .
    0x14000000,  # second: b .
)


def test_lines_of_a_page_are_maintained_in_one_slice(tmp_path):
    """Linux does that for each page of code, 64 lines, while other cores run."""

    def run(lines: int) -> Machine:
        words = list(LINES_OF_A_PAGE)
        words[1] |= (len(words) - 2) << 5
        words[7] |= lines << 5
        (tmp_path / "kernel8.img").write_bytes(struct.pack(f"<{len(words)}I", *words))
        machine = Machine(tmp_path, board="pi3")
        assert machine.run().reason is Stop.HALTED
        assert len(machine.processors.running) == 2
        return machine

    few, many = run(2), run(64)
    assert many.cores[0].register(3) - few.cores[0].register(3) == 62 * 64
    assert many.turns.slices <= few.turns.slices + 1
