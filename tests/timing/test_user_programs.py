"""Timing of user programs: both engines feed the same, nothing else changes, who waits for whom."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.support.compute import DATA, END, Board
from tests.support.timing import cache, stall, timed
from tests.support.timing_rows import LOAD, STORE, load_setup, loop, start, store_setup
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.timing.result import Timing
from vc4lab.timing.user_programs import ProgramTiming
from vc4lab.v3d.events import ProgramRecorded

EVERYTHING = start(
    "mov r1, unif", f"ldi vw_setup, {store_setup(4):#x}", f"ldi vr_setup, {load_setup(4):#x}"
) + loop(
    "mov t0s, r1\nnop ; nop ; ldtmu0\nsrel -, 2\nsacq -, 2\nmov -, mutex\nmov mutex, 0\n"
    "ldi vr_setup, 0x201a00\nmov r2, vpm\nmov r2, vpm\nldi vw_setup, 0x1a00\nmov vpm, r2\n"
    f"ldi vr_setup, {load_setup(4):#x}\nldi vw_setup, {store_setup(4):#x}\n"
    f"mov recip, r1\nmov unif_addr, r1\nnop\nnop\nmov r2, unif\nmov tmurs, 1\n{LOAD}{STORE}",
    40,
)


LOOKS = start("mov r1, unif") + loop("mov t0s, r1\nnop ; nop ; ldtmu0\n" + LOAD, 12)


def records(engine: str) -> list[Any]:
    """Each QPU's words, whatever the pieces they came in."""
    board = Board(engine, threads=1)
    found: dict[int, list[int]] = {}
    ends: dict[int, tuple[int, bool]] = {}

    def take(event: ProgramRecorded) -> None:
        found.setdefault(event.qpu, []).extend(event.record)
        ends[event.qpu] = event.executed, event.ended

    with board.programs.listeners.program_recorded.subscribe(take):
        code = board.load(EVERYTHING)
        for number in range(3):
            board.start(code, [5 + number, DATA])
        outcome = board.finish()
    assert outcome.completed == 3
    return [found, ends]


def test_both_engines_record_the_same() -> None:
    reference, native = records("interpreter"), records("jit")
    assert reference == native
    assert reference[1][2][1]


def test_both_engines_have_the_same_clocks() -> None:
    runs = [timed(EVERYTHING, [[6, DATA]], qpus=6, engine=e) for e in ("interpreter", "jit")]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("program", [EVERYTHING, LOOKS], ids=["waits", "side by side"])
def test_the_same_clocks_in_two_runs_with_any_number_of_threads(program: str) -> None:
    runs = [timed(program, [[9, DATA]], qpus=12, threads=n) for n in (1, 1, 3)]
    assert runs[0] == runs[1] == runs[2]


def test_recording_changes_nothing() -> None:
    outcomes = []
    for listens in (False, True):
        board = Board("jit", threads=1)
        timing = ProgramTiming()
        code = board.load(EVERYTHING)
        for number in range(2):
            if listens and number == 0:
                scope = timing.listen(board.programs.listeners)
                scope.__enter__()
            board.start(code, [4, DATA])
        outcomes.append(board.finish())
        if listens:
            scope.__exit__(None, None, None)
    assert not outcomes[0].differences(outcomes[1])


def test_long_records_come_in_pieces() -> None:
    """More than `ROOM` of them, at the end of a turn and not of the program."""
    program = start("mov r1, unif") + loop("mov t0s, r1\nnop ; nop ; ldtmu0\n", 12)
    timing = timed(program, [[40_000, DATA]], qpus=2)
    assert [qpu.instructions for qpu in timing.qpus] == [2 + 12 * 40_000 + 3] * 2
    assert not timing.notes


def test_branches_to_registers_and_their_targets() -> None:
    program = (
        "brr ra0, sub\nnop\nnop\nnop\nbrr ra0, sub\nnop\nnop\nnop\nnop ; nop ; thrend\nnop\nnop\n"
        "sub: add r0, r0, 1\nbra -, ra0\nnop\nnop\nnop\n"
    )
    timing = timed(program)
    assert timing.qpus[0].instructions == 21
    assert timing.qpus[0].busy == 84


def test_stalls_have_their_causes() -> None:
    timing = timed(EVERYTHING, [[20, DATA]], qpus=4)
    for cause in ("instruction cache", "TMU result", "VPM read set-up", "waits for its DMA load",
                  "waits for its DMA store", "DMA load engine in use"):  # fmt: skip
        assert sum(stall(timing, cause, qpu) for qpu in range(4)) > 0, cause
    for qpu in timing.qpus:
        assert qpu.busy + sum(qpu.stalls.values()) == qpu.ended - qpu.started


def test_the_mutex_lets_one_at_a_time() -> None:
    body = "mov -, mutex\n" + "nop\n" * 20 + "mov mutex, 0\n"
    program = start() + loop(body, 27)
    one, four = (timed(program, [[50]], qpus=n).clocks for n in (1, 4))
    assert four > 3 * 50 * 22 * 4 > one


def test_a_program_that_waits_for_ever_says_so() -> None:
    timing = timed("nop\nsacq -, 5" + END)
    assert timing.notes == ("QPU 0 has not ended: timed up to 0x00010008, where it stands",)


def test_programs_that_would_wait_for_each_other_on_the_chip() -> None:
    """The one that takes the mutex first here comes to it later on the chip."""
    late = "nop\n" * 60 + "mov -, mutex\nsrel -, 1\nmov mutex, 0\n" + END
    early = "mov -, mutex\nsacq -, 1\nmov mutex, 0\n" + END
    timing = timed([late, early])
    assert timing.notes == (
        "the model stands still, as the chip would:",
        "QPU 0 waits at 0x000101e0: mutex, held by QPU 1",
        "QPU 1 waits at 0x00010258: semaphore 1 (now 0)",
    )


def texture_sample(across: int) -> Timing:
    """A texture of 256 x 256 sampled once, lanes `across` / 256 of its width apart."""
    program = f"itof r0, elem_num\nfmul r0, r0, unif\nmov t0t, 0\nmov t0s, r0\nnop ; nop ; ldtmu0\n{END}"
    step = struct.unpack("I", struct.pack("f", across / 256))[0]
    nearest = 1 << 7 | 1 << 4
    return timed(program, [[step, DATA, 0x100 << 8 | 0x100 << 20 | nearest]])


def test_texels_are_fetched_from_memory() -> None:
    """A utile of 4 x 4 texels is a line: 16 lanes need one of them, or 16."""
    together, apart = texture_sample(0), texture_sample(8)
    assert [cache(one, "tmu").misses for one in (together, apart)] == [1, 16]
    assert [cache(one, "tmu").hits for one in (together, apart)] == [15, 0]
    assert stall(apart, "TMU result") > stall(together, "TMU result") + 15
    assert not apart.notes


# -- vc4lab run --timing


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["run", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "loads.qasm"
    path.write_text(start("mov r1, unif", f"ldi vr_setup, {load_setup(16):#x}") + loop(LOAD, 7))
    return path


def test_run_says_how_long_it_takes_and_why(program: Path) -> None:
    code, output = run(program, "--timing", "-m", "a=4096", "-u", "10, a", "--qpus", "2")
    assert code == 0
    assert "clocks of the V3D (videocore4 on pi3)" in output
    assert "pi1:" in output
    assert "at 250 MHz" in output
    assert "waits for its DMA load" in output
    assert "line 6, 0x00001020 `mov -, vr_wait`: waits for its DMA load" in output


def test_run_prints_json(program: Path) -> None:
    code, output = run(
        program, "--timing", "--json", "--board", "pi1", "-m", "a=4096", "-u", "10, a",
        "-d", "a:hex:2",
    )  # fmt: skip
    assert code == 0
    found = json.loads(output)
    assert found["timing"]["board"] == "pi1"
    assert found["timing"]["clocks"] > 10 * 300
    assert found["timing"]["qpus"][0]["stalls"]["waits for its DMA load"] > 0
    assert found["dumps"] == ["a+0x0000: 00000000 00000000"]


def test_run_takes_the_users_chip(program: Path, tmp_path: Path) -> None:
    chip = tmp_path / "fast.toml"
    chip.write_text('like = "videocore4"\n[load]\nrow_clocks = 1\nword_clocks = 0.25\n')
    arguments = program, "--timing", "--json", "-m", "a=4096", "-u", "10, a"
    slow, fast = run(*arguments)[1], run(*arguments, "--chip", chip)[1]
    assert json.loads(fast)["timing"]["clocks"] < json.loads(slow)["timing"]["clocks"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--chip", "none.toml"), "none.toml: No such file"),
        (("--board", "pi9"), "board 'pi9': videocore4 is on pi0, pi1, pi2, pi3"),
    ],
)
def test_bad_options(program: Path, options: tuple[str, ...], words: str) -> None:
    code, output = run(program, "--timing", *options)
    assert code == ExitCode.BAD_INPUT
    assert words in output


@pytest.mark.parametrize("option", [("--json",), ("--chip", "x"), ("--board", "pi1")])
def test_options_that_go_with_timing(program: Path, option: tuple[str, ...]) -> None:
    code, output = run(program, *option)
    assert code == ExitCode.BAD_INPUT
    assert f"{option[0]} goes with --timing" in output


def test_a_chip_with_fewer_qpus(program: Path, tmp_path: Path) -> None:
    chip = tmp_path / "small.toml"
    chip.write_text('like = "videocore4"\n[slices]\ncount = 1\n')
    code, output = run(program, "--timing", "--chip", chip, "--qpus", "5", "-m", "a=4", "-u", "1,a")
    assert code == ExitCode.BAD_INPUT
    assert "small.toml:3: [slices] count: 4 QPUs, but the program was started on QPU 4" in output
