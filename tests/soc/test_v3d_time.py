"""Guest time of V3D work on a whole board: who waits how long, and who ends when."""

import struct

import pytest
from tests.soc.conftest import KERNELS
from tests.support.jobs import Job
from tests.support.programs import LOOP

from vc4lab.soc.clock import NANOSECONDS
from vc4lab.soc.result import Stop
from vc4lab.soc.states.state import load_state, save_state

HALT = bytes.fromhex("feffffea")
V3D, MAILBOX = 0xC00000, 0xB880
CT1CA, CT1EA, RFC = V3D + 0x114, V3D + 0x10C, V3D + 0x138
SRQUA, SRQPC, SRQCS = V3D + 0x434, V3D + 0x430, V3D + 0x43C
CLEAR = 212_000
"""Nanoseconds for a clear of 640 x 360 pixels of 16 bits, at 250 MHz."""


def call(machine, tag: int, *values: int) -> int:
    """Send a tag; the first word of its answer."""
    machine.mailbox.at_once = True
    words = [tag, 16, 0, *values, *[0] * (4 - len(values)), 0]
    message = struct.pack(f"<{2 + len(words)}I", 8 + 4 * len(words), 0, *words)
    machine.memory.write(0x100000, message)
    machine.bus.write(MAILBOX + 0x20, 4, 0x100000 | 0xC0000000 | 8)
    machine.bus.read(MAILBOX, 4)
    return machine.memory.u32(0x100000 + 20)


class Board:
    """A machine whose CPU does nothing, and a list for it that clears a frame."""

    def __init__(self, boot, code: bytes = HALT, config: str | None = None) -> None:
        self.machine = boot(code, config, v3d_factory=None)
        call(self.machine, 0x30012, 1)
        self.job = Job(self.machine.memory, 640, 360, 0x200000)
        _start, _end, lists = self.job.binning(b"")
        for tile in range(60):
            self.machine.memory.write(lists + 32 * tile, b"\x12")  # return
        self.list = self.job.rendering(lists, 0x400000, format=2)

    def render(self) -> None:
        self.machine.bus.write(CT1CA, 4, self.list[0])
        self.machine.bus.write(CT1EA, 4, self.list[1])

    def program(self, rounds: int) -> tuple[int, int]:
        """A program of 7 instructions a round in memory: uniforms, code."""
        uniforms = self.job.put(struct.pack("<I", rounds))
        return uniforms, self.job.program(LOOP)

    def compute(self, rounds: int) -> None:
        uniforms, code = self.program(rounds)
        self.machine.bus.write(SRQUA, 4, uniforms)
        self.machine.bus.write(SRQPC, 4, code)


@pytest.fixture
def board(boot) -> Board:
    return Board(boot)


def test_a_program_that_halts_behind_the_start_of_a_frame_still_gets_it(board) -> None:
    machine = board.machine
    began = machine.clock.now
    board.render()
    assert machine.frames.count == 0
    result = machine.run()
    assert (result.reason, result.frames) == (Stop.HALTED, 1)
    assert CLEAR / 2 < machine.clock.now - began < 2 * CLEAR


def test_the_frame_comes_at_its_moment(board) -> None:
    machine = board.machine
    began = machine.clock.now
    board.render()
    assert machine.run(frames=1).reason is Stop.FRAMES
    assert abs(machine.clock.now - began - CLEAR) < CLEAR // 4
    assert machine.bus.read(RFC, 4) == 1


def test_the_v3d_clock_that_the_program_sets_counts(board) -> None:
    machine = board.machine
    call(machine, 0x38002, 5, 125_000_000, 0)
    began = machine.clock.now
    board.render()
    machine.run(frames=1)
    assert abs(machine.clock.now - began - 2 * CLEAR) < CLEAR // 4


def test_the_v3d_clock_of_config_txt_counts(boot) -> None:
    machine = (board := Board(boot, config="v3d_freq=125\n")).machine
    began = machine.clock.now
    board.render()
    machine.run(frames=1)
    assert abs(machine.clock.now - began - 2 * CLEAR) < CLEAR // 4


def test_a_program_that_never_waits_for_its_frames_does_not_stop_time(board) -> None:
    machine = board.machine
    began = machine.clock.now
    for _ in range(100):
        board.render()
    assert machine.frames.count == 99
    assert abs(machine.clock.now - began - 99 * CLEAR) < 10 * CLEAR


def test_execute_qpu_takes_as_long_as_its_programs(board) -> None:
    machine = board.machine
    uniforms, code = board.program(250_000)
    machine.memory.write(0x110000, struct.pack("<II", uniforms, code))
    began = machine.clock.now
    assert call(machine, 0x30011, 1, 0x110000, 1, 5000) == 0
    assert abs(machine.clock.now - began - NANOSECONDS * 7 * 250_000 * 4 // 250_000_000) < 500_000


def test_a_long_job_is_no_hang(board) -> None:
    """40 s at the slowest clock, with the CPU asleep: longer than anything may be quiet."""
    machine = board.machine
    call(machine, 0x38002, 5, 1_000_000, 0)
    began = machine.clock.now
    board.compute(1_430_000)
    result = machine.run()
    assert result.reason is Stop.HALTED
    assert machine.clock.now - began > 39 * NANOSECONDS
    assert machine.bus.read(SRQCS, 4) >> 16 & 0xFF == 1


def test_a_polled_counter_changes_at_the_right_moment(board) -> None:
    """Reading RFC again and again lets time go on, never beyond the end of the frame."""
    machine = board.machine
    began = machine.clock.now
    board.render()
    while machine.bus.read(RFC, 4) == 0:
        machine.clock.run_due()
        assert machine.clock.now - began < 2 * CLEAR
    assert abs(machine.clock.now - began - CLEAR) < CLEAR // 4


def test_power_taken_away_takes_what_was_to_come(board) -> None:
    machine = board.machine
    board.render()
    machine.v3d_bridge.switch("domain", False)
    assert not machine.v3d_bridge.is_busy
    assert machine.run().frames == 0


def test_saved_states_hold_what_is_not_visible_yet(boot, board, tmp_path) -> None:
    machine = board.machine
    board.render()
    board.compute(1000)
    machine.bus.read(SRQCS, 4)
    path = tmp_path / "state"
    save_state(machine, path)
    other = boot(HALT, v3d_factory=None)
    load_state(other, path)
    results = [one.run() for one in (machine, other)]
    assert results[0] == results[1]
    assert results[1].frames == 1
    for one in (machine, other):
        assert one.bus.read(RFC, 4) == 1
        assert one.bus.read(SRQCS, 4) >> 16 & 0xFF == 1


def test_states_of_strangers_do_not_move_time_beyond_its_end(boot, board, tmp_path) -> None:
    machine = board.machine
    progress = machine.v3d_bridge.time.progress
    board.render()
    progress.threads[:] = [1 << 69, 1 << 69]
    progress.pending.extend((-1, 1 << 69 | 15, 5))
    path = tmp_path / "state"
    save_state(machine, path)
    other = boot(HALT, v3d_factory=None)
    load_state(other, path)
    other.bus.write(CT1CA, 4, board.list[0])
    other.bus.write(CT1EA, 4, board.list[1])
    other.bus.write(CT1CA, 4, board.list[0])
    other.bus.write(CT1EA, 4, board.list[1])
    assert other.run(seconds=0.01) is not None


@pytest.mark.parametrize("frames", [None, 1])
@pytest.mark.parametrize("company", [0, 1])
def test_polling_a_counter_for_ever_is_a_hang_although_a_picture_stands(boot, frames, company):
    """The list halts by itself; other cores may poll something, too."""
    code = bytearray((KERNELS / "v3d_wait.img").read_bytes())
    code[4] = company
    machine = boot(bytes(code), v3d_factory=None)
    result = machine.run(frames=frames)
    assert result.reason is Stop.HANG
    assert "keeps reading v3d.RFC" in result.message
    assert "the rendering list is halted at 0x" in result.message
