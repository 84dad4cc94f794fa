"""The SDRAM of the model: open rows, banks, refreshes, turns of the bus, what others take."""

from pathlib import Path

import pytest
from tests.support.compute import DATA, END, Board
from tests.support.timing import per_round, timed
from tests.support.timing_rows import LOAD, loop, start

from vc4lab.timing.boards import speeds_of
from vc4lab.timing.chip import Chip, load_chip
from vc4lab.timing.compute.board_memory import memory_figures
from vc4lab.timing.compute.kinds import FRACTION
from vc4lab.timing.user_programs import ProgramTiming

ONE = 1 << FRACTION
QUICK = "row_clocks = 0\nword_clocks = 0\n"
BARE = f"[load]\n{QUICK}ahead = 64\n[store]\n{QUICK}"
"""DMA engines that never are what takes time."""


@pytest.fixture
def variant(tmp_path: Path):
    """A chip like videocore4 with other figures."""

    def make(text: str) -> Chip:
        path = tmp_path / "chip.toml"
        path.write_text('like = "videocore4"\n' + text)
        return load_chip(path)

    return make


def load_rows(pitch: int) -> str:
    """The set-up of a load of 16 rows of 16 words, `pitch` bytes apart."""
    return f"ldi vr_setup, {0x80000800 | (pitch.bit_length() - 4) << 24:#x}"


def clocks_of_load(chip: Chip, pitch: int, board: str = "pi1") -> float:
    """Clocks of a load of 16 rows, one after the other."""
    program = start("mov r1, unif", load_rows(pitch)) + loop(LOAD * 4, 13)
    return per_round(program, lambda n: [[n, DATA]], 10, 60, board=board, chip=chip) / 4


def test_rows_of_one_bank_take_their_cycle(variant) -> None:
    """Each row is open for tRAS, and closed in tRP; other banks may be opened meanwhile."""
    chip = variant(BARE + "[sdram]\nrefresh_interval = 0\noverlap = 1\n")
    one_row, many_banks, one_bank = (clocks_of_load(chip, p) for p in (64, 4096, 8 * 4096))
    cycle = (42 + 18) * 0.25  # ns at 250 MHz
    assert one_bank >= 16 * cycle
    assert one_bank < 16 * cycle + 60
    assert many_banks < 0.7 * one_bank
    assert one_row < many_banks


def test_a_stream_goes_at_the_speed_of_the_bus(variant) -> None:
    chip = variant(BARE + "[sdram]\nrefresh_interval = 0\n")
    slow, fast = (clocks_of_load(chip, 64, board) for board in ("pi1", "pi2"))
    # 1024 bytes of 3.2 and 3.6 GB/s
    assert slow - fast == pytest.approx(1024 / 12.8 - 1024 / 14.4, abs=2)


@pytest.mark.parametrize(("interval", "share"), [(1000, 0.15), (2000, 0.075)])
def test_refreshes_take_their_share(variant, interval: int, share: float) -> None:
    """130 ns of them and 21 to close all rows, of each interval."""
    none, some = (
        clocks_of_load(variant(BARE + f"[sdram]\nrefresh_interval = {ns}\n"), 64) for ns in (0, interval)
    )
    assert some / none == pytest.approx(1 + share, abs=0.06)


def test_a_controller_that_prepares_several_banks_is_faster(variant) -> None:
    one, several = (clocks_of_load(variant(BARE + f"[sdram]\noverlap = {flag}\n"), 4096) for flag in (0, 1))
    assert one >= 16 * (18 + 18 + 20) * 0.25  # tRP, tRCD and the data of each row
    assert several < 0.7 * one


def test_writes_in_bunches_turn_the_bus_less_often(variant) -> None:
    """Loads and stores at the same time."""
    program = start("mov r1, unif", load_rows(64), "ldi vw_setup, 0x88104000") + loop(
        "mov vw_addr, r1\n" + LOAD * 2 + "mov -, vw_wait\n", 11
    )

    def clocks(bunch: int) -> float:
        chip = variant(BARE + f"[sdram]\nbunch = {bunch}\nrefresh_interval = 0\n")
        return per_round(program, lambda n: [[n, DATA]], 10, 60, board="pi1", chip=chip)

    assert clocks(16) < clocks(1)


def test_others_take_their_share(variant) -> None:
    chip = variant(BARE)
    busy = variant(BARE + "[sdram]\nothers = 1.6e9\n")
    alone, beside = (clocks_of_load(one, 64) for one in (chip, busy))
    assert beside > 1.3 * alone
    program = start("mov r1, unif", load_rows(64)) + loop(LOAD, 7)
    timing = timed(program, [[200, DATA]], board="pi1", chip=busy)
    assert timing.memory_bytes["loads"] == 200 * 1024
    assert timing.memory_bytes["others"] == pytest.approx(timing.clocks / 250e6 * 1.6e9, rel=0.02)
    assert timed(program, [[5, DATA]], chip=chip).memory_bytes["others"] == 0


def test_a_board_says_what_nanoseconds_are_in_clocks() -> None:
    chip = load_chip("videocore4")
    one, three = (memory_figures(chip, speeds_of(chip).of_board[board]) for board in ("pi1", "pi3"))
    assert one["open_part"] == round(18e-9 * 250e6 * ONE)
    assert three["open_part"] == round(18e-9 * 300e6 * ONE)
    assert one["read_part"] == round(6 / 400e6 * 250e6 * ONE)
    assert three["read_part"] == round(6 / 450e6 * 300e6 * ONE)


def test_the_l2_cache_is_not_called_while_there_is_no_room_after_it(variant) -> None:
    """640 clocks a line, and one request that may wait: it is called when that is taken."""
    chip = variant("[sdram]\nbytes_per_clock = 0.1\n[queues.memory_requests]\ndepth = 1\n")
    text = "mov r0, unif\nshl r1, elem_num, 6\nadd r0, r0, r1\nmov t0s, r0\nnop ; nop ; ldtmu0" + END
    timing = ProgramTiming(chip, "pi2")
    board = Board("jit", threads=1)
    with timing.listen(board.programs.listeners):
        for number in range(4):
            board.start(text, [DATA + 1024 * number])
        board.finish()
    clocks = timing.result().clocks
    machine = timing.models[timing.speeds.of_board["pi2"]].machine
    (events,) = (
        int(one.events)
        for (name, _), one in zip(machine.names, machine.instances, strict=True)
        if name == "l2"
    )
    assert clocks > 64 * 640
    assert events < 8 * 64
