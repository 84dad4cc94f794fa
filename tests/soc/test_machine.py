"""Whole programs: serial output, pictures, time, interrupts, hangs, crashes."""

from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.soc.board import UnknownBoard, find_board
from vc4lab.soc.machine import Stop


def test_prints_on_the_pl011(boot):
    machine = boot("hello", "enable_uart=1\n")
    result = machine.run()
    assert machine.uart.text == "hello from the ARM\n"
    assert result.reason is Stop.HALTED
    assert "0x00008028" in result.message
    assert machine.reporter.items == []


def test_mini_uart_finds_aux0_and_echoes(boot):
    machine = boot("mini_uart", typed="x")
    assert machine.run().reason is Stop.HALTED
    assert machine.uart.text == "?x"


def test_draws_through_property_tags(boot):
    machine = boot("framebuffer")
    assert machine.screen.image is None
    result = machine.run(frames=1)
    assert result.reason is Stop.FRAMES
    image = machine.screen.image
    assert image.size == machine.screen.size == (64, 48)
    assert image.getpixel((5, 9)) == (5 ^ 9, 0, 9)
    assert image.getpixel((63, 47)) == (63 ^ 47, 0, 47)


def test_draws_through_channel_1(boot):
    machine = boot("channel1")
    machine.run(frames=1)
    assert machine.screen.image.size == (32, 16)
    assert machine.screen.image.getcolors() == [(512, (255, 0, 0))]


def test_more_frames_than_a_halted_program_shows(boot):
    result = boot("framebuffer").run(frames=5)
    assert result.reason is Stop.HALTED
    assert result.frames == 1


def test_polled_timer_waits_exactly_and_quickly(boot):
    machine = boot("wait")
    machine.run()
    first, second, end = (machine.cpu.register(n) for n in (4, 5, 6))
    assert 100_000 <= second - first <= 100_020
    assert 100_000 <= end - second <= 100_020
    assert machine.counter.count < 2_000_000


def test_fake_vsync_paces_a_polling_program(boot):
    machine = boot("vsync", "fake_vsync_isr=1\n")
    machine.run()
    assert machine.cpu.register(4) == 10
    assert machine.cpu.register(5) == pytest.approx(10 * 1e6 / 60, abs=50)


def test_without_fake_vsync_the_hang_is_explained(boot):
    machine = boot("vsync")
    result = machine.run()
    assert result.reason is Stop.HANG
    assert "irq.PENDING[1]" in result.message
    assert "fake_vsync_isr=1" in result.message
    assert machine.reporter.has("SOC-040")


def test_interrupts_reach_the_handler_and_wake_wfi(boot):
    machine = boot("irq")
    assert machine.run().reason is Stop.HALTED
    assert machine.cpu.register(10) == 5
    assert machine.seconds == pytest.approx(0.005, abs=1e-5)


def test_exceptions_go_to_their_vectors(boot):
    machine = boot("svc")
    result = machine.run()
    assert machine.cpu.register(4) == 2
    assert machine.cpu.register(5) == 17
    assert "wfe" in result.message


def test_polling_forever_is_a_hang(boot):
    result = boot("hang").run()
    assert result.reason is Stop.HANG
    assert "mailbox.STATUS" in result.message
    assert 10 < result.seconds < 11


def test_seconds_end_a_program_that_would_hang(boot):
    machine = boot("hang")
    result = machine.run(seconds=0.5)
    assert result.reason is Stop.SECONDS
    assert result.seconds == pytest.approx(0.5, abs=1e-4)
    assert machine.run(seconds=0.25).seconds == pytest.approx(0.75, abs=1e-4)


def test_frames_that_do_not_come_in_time(boot):
    result = boot("hang").run(frames=1, seconds=0.1)
    assert result.reason is Stop.HANG
    assert "before the requested frames" in result.message


def test_an_exception_without_handler_is_a_crash(boot):
    machine = boot("undefined")
    result = machine.run()
    assert result.reason is Stop.CRASH
    assert "undefined instruction at 0x00008000" in result.message
    assert machine.reporter.has("SOC-042")


def test_addresses_outside_ram_and_the_unpowered_v3d(boot):
    machine = boot("unmasked")
    assert machine.run().reason is Stop.HALTED
    assert machine.cpu.register(9) == 0xDEADBEEF
    assert {"SOC-030", "SOC-003", "SOC-002", "SOC-001"} <= set(machine.reporter.counts)
    assert "0x3c100000" in machine.reporter.summary()


@pytest.mark.parametrize(("page", "named"), [(0x208000, "DPI"), (0x700000, "DSI 1"), (0x801000, "Unicam 1")])
def test_registers_of_the_display_are_named(boot, page: int, named: str):
    """A program that drives the display itself hears why its picture does not come."""
    machine = boot("hang")
    machine.bus.write(page, 4, 1)
    (item,) = [item for item in machine.reporter.items if item.code == "SOC-001"]
    assert item.message.startswith(f"write to {named}")
    assert "not modelled" in item.message


def test_v3d_frames_count(boot):
    machine = boot("v3d")
    assert machine.v3d is None
    result = machine.run(frames=2)
    assert result.reason is Stop.FRAMES
    assert machine.frames.rendered == 2
    assert machine.run(frames=1).frames == 3
    assert machine.cpu.register(9) == 0x02443356
    assert machine.run().reason is Stop.HALTED


def test_a_stalled_v3d_is_named(boot):
    machine = boot("hang")
    machine.videocore.set_clock_state(5, 1)
    machine.v3d.waiting = "thread 1 waits on the semaphore"
    result = machine.run()
    assert "the V3D: thread 1 waits on the semaphore" in result.message


def test_strict_stops_at_an_error(boot):
    machine = boot("unmasked", reporter=Reporter(strict=True))
    with pytest.raises(StrictStop) as stop:
        machine.run()
    assert stop.value.diagnostic.code == "SOC-030"


def test_two_runs_are_equal(boot):
    def once() -> tuple[int, int, bytes]:
        machine = boot("irq")
        machine.run()
        return machine.counter.count, machine.clock.now, machine.memory.read(0, 0x10000)

    assert once() == once()


def test_random_code_ends(boot):
    import random

    for seed in range(20):
        code = random.Random(seed).randbytes(4096)
        result = boot(code).run(seconds=0.02)
        assert isinstance(result.reason, Stop)


def test_boards_are_data():
    assert find_board("PI2").machine_id == 0xC43
    assert find_board("raspi3b").name == "pi3"
    with pytest.raises(UnknownBoard, match=r"zero, pi1, pi2, pi2-1\.2, pi3"):
        find_board("pi9")


def test_fiq_wakes_a_branch_to_itself(boot):
    machine = boot("fiq")
    assert machine.run().reason is Stop.HALTED
    assert machine.cpu.register(7) == 1
    assert machine.seconds == pytest.approx(0.002, abs=1e-5)


def test_the_order_nobody_documented_is_a_switch(boot):
    from vc4lab.v3d.unknowns import Unknowns

    machine = boot("hello", unknowns=Unknowns({"framebuffer_order": "rgb"}))
    assert machine.videocore.framebuffer.geometry.order == 1
    assert boot("hello").videocore.framebuffer.geometry.order == 0


@pytest.mark.parametrize(("swap", "order"), [("0", 1), ("1", 0)])
def test_config_txt_decides_the_order(boot, swap, order):
    machine = boot("hello", f"framebuffer_swap={swap}\n")
    assert machine.videocore.framebuffer.geometry.order == order


def test_waiting_for_memory_that_an_interrupt_writes(boot):
    machine = boot("memory_irq", "fake_vsync_isr=1")
    assert machine.run().reason is Stop.HALTED
    assert machine.cpu.register(4) == pytest.approx(50_000, abs=50)


def test_waiting_for_memory_that_nobody_writes(boot):
    result = boot("memory_wait").run()
    assert result.reason is Stop.HANG
    assert "waits for memory to change" in result.message


def test_a_core_released_by_its_mailbox_runs_from_there(boot):
    machine = boot("hello")
    machine.local_bus.write(0x9C, 4, 0x8000)
    assert machine.cores[1].pc == 0, "the stub waits for an event"
    machine.processors.events.send()
    assert machine.run().reason is Stop.HALTED
    assert sorted(machine.uart.text) == sorted(2 * "hello from the ARM\n")


def test_an_interrupt_without_handler_is_a_crash(boot):
    """The program of fiq.img, which never tells the CPU where its vectors are."""
    image = (Path(__file__).parent / "kernels" / "fiq.img").read_bytes()
    set_vectors, nothing = (0xEE0C0F10).to_bytes(4, "little"), (0xE1A00000).to_bytes(4, "little")
    assert set_vectors in image
    result = boot(image.replace(set_vectors, nothing)).run(seconds=0.05)
    assert result.reason is Stop.CRASH
    assert "fast interrupt" in result.message


def test_a_program_that_runs_into_empty_ram_has_crashed(boot):
    """b 0x1000000, where there are only zeros: instructions that do nothing."""
    machine = boot(bytes.fromhex("fedf3fea"))
    result = machine.run()
    assert result.reason is Stop.CRASH
    assert "empty RAM" in result.message
    assert machine.reporter.has("SOC-043")
