"""The registers of a list thread, in the sequences programs use."""

from vc4lab.v3d.cle.thread import ListThread
from vc4lab.v3d.registers import BY_NAME, BY_OFFSET, REGISTERS, ThreadControl


def test_start_sequences() -> None:
    thread = ListThread(1)
    thread.set_current(0x100)
    assert thread.set_end(0x200)
    assert ThreadControl(thread.status(0)).CTRUN
    assert not thread.set_end(0x300)  # running: only moves the end
    thread.running = False
    thread.current = 0x300
    assert not thread.set_end(0x300)  # nothing to do
    assert thread.set_end(0x400)  # resumes after the old end


def test_halt_and_resume() -> None:
    thread = ListThread(0, current=0x110, end=0x200, halted=True)
    assert ThreadControl(thread.status(0)).CTSUBS
    assert not thread.set_end(0x300)  # stopped at halt, not at end
    assert thread.write_control(ThreadControl.make(CTSUBS=1).value)
    thread.running = False
    thread.halted = True
    thread.set_current(0x500)
    assert thread.set_end(0x600)  # a new CA makes it "stopped at end"


def test_a_thread_that_is_not_halted_is_not_resumed() -> None:
    thread = ListThread(0, current=0x110, end=0x200)
    assert not thread.write_control(ThreadControl.make(CTSUBS=1).value)
    assert not thread.running
    thread.halted = True
    assert not thread.write_control(0)
    assert thread.halted
    thread.end = thread.current
    assert not thread.write_control(ThreadControl.make(CTSUBS=1).value), "it is at its end"


def test_stop_and_reset() -> None:
    thread = ListThread(0, current=0x110, end=0x200, running=True, stalled="a test", increments=3)
    status = ThreadControl(thread.status(thread.increments))
    assert (status.CTRUN, status.CTSUBS, status.CTSEMA) == (1, 1, 3)
    assert not thread.write_control(ThreadControl.make(CTRUN=1).value)
    assert thread.halted
    assert thread.stalled is None
    thread.set_current(0x700)
    thread.write_control(ThreadControl.make(CTRSTA=1).value)
    assert thread.status(thread.increments) == ThreadControl.make(CTMODE=1).value
    assert thread.current == 0x700


def test_current_address_is_protected_while_running() -> None:
    thread = ListThread(1, current=4, end=8, running=True)
    thread.set_current(0x999)
    assert thread.current == 4


def test_counters_clear_separately() -> None:
    thread = ListThread(1, flushes=3, returns=0x12345)
    assert thread.list_counters() == 0x0003_2345
    thread.clear_counters(1)
    assert thread.list_counters() == 0x0003_0000
    thread.clear_counters(1 << 16)
    assert thread.list_counters() == 0


def test_register_map_has_no_overlap() -> None:
    assert len(BY_OFFSET) == len(BY_NAME) == len(REGISTERS)
    assert all(register.offset % 4 == 0 for register in REGISTERS)
    assert "CTRUN=1" in BY_NAME["CT0CS"].describe(0x20)
