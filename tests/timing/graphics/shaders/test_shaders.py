"""QPUs that run shaders: clocks computed by hand, and those of user programs."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.support.compute import DATA, END
from tests.support.shading import Shaded, shaded
from tests.support.timing import timed

from vc4lab.timing.compute.kinds import CAUSE_TEXT, Cause
from vc4lab.timing.graphics.deadlock import standing_threads
from vc4lab.timing.graphics.state import TaskKind

SLOT = 4
LATE = "mov tlbc, r0" + END
"""The tile is locked for the colour."""
EARLY_LOCK = "nop ; nop ; sbwait\n"


def lengths(result: Shaded) -> list[int]:
    """Clocks from the end of a vector to the end of the next one."""
    ends = [result.ends[number] for number in sorted(result.ends)]
    return [after - before for before, after in pairwise(ends)]


# -- one thread


def test_a_program_in_the_cache_takes_a_slot_for_each_instruction() -> None:
    result = shaded("nop\n" * 20 + END, 5)
    assert lengths(result)[1:] == [23 * SLOT] * 3
    assert result.stalls() == {Cause.INSTRUCTIONS: result.stall(Cause.INSTRUCTIONS)}


@pytest.mark.parametrize(("launch", "gap"), [(1, 0), (11, 0), (12, 1), (30, 19)])
def test_the_next_thread_is_given_at_the_signal(launch: int, gap: int) -> None:
    """The end is signalled 12 clocks before the last instruction is over; the scheduler is called a
    clock later. What is on its way for longer begins later."""
    result = shaded("nop\n" * 20 + END, 5, launch=launch)
    assert lengths(result)[1:] == [23 * SLOT + gap] * 3


def test_a_thread_begins_after_the_end_of_the_one_before() -> None:
    """Though that one waits at its end: its vector comes after a long one of another QPU."""
    programs = ["nop\n" * 60 + END, END, "nop\n" * 8 + END, "nop\n" * 8 + END]
    result = shaded(programs, 4, qpus=2, places=1)
    spent = sum(int(one.spent[TaskKind.FRAGMENTS]) for one in result.qpus)
    assert in_order(result)
    assert spent <= 2 * result.clocks


@pytest.mark.parametrize("qpus", [1, 4])
def test_a_line_of_instructions_misses_once_in_each_slice(qpus: int) -> None:
    result = shaded("nop\n" * 45 + END, 3 * 2 * qpus, qpus=qpus, slices=2)
    assert [result.misses("instruction_cache", number) for number in (0, 1)] == [6, 6]
    assert result.misses("l2") == 6 + 1  # and one of uniforms


def test_a_program_that_the_cache_cannot_hold_misses_every_time() -> None:
    result = shaded("nop\n" * 600 + END, 3)
    assert result.misses("instruction_cache") > 2 * 75


def test_instructions_executed_and_busy() -> None:
    result = shaded("nop\n" * 20 + END, 5)
    assert result.qpus[0].common.executed == 5 * 23
    assert result.segments[0][1] == 5
    instance = next(
        one for one, (name, _) in zip(result.machine.instances, result.machine.names, strict=True)
        if name == "qpu"
    )  # fmt: skip
    assert instance.busy == 5 * 23 * SLOT


# -- uniforms


def test_the_first_word_comes_from_the_slices_cache() -> None:
    """51 clocks, of which ten are over when the thread begins: 11 slots."""
    result = shaded("mov r0, unif" + END, 5)
    assert lengths(result)[2] == (11 + 4) * SLOT
    assert result.segments[0][2] == pytest.approx(5 * 11 * SLOT, abs=200)


def test_a_thread_may_have_its_first_words_sooner() -> None:
    result = shaded("mov r0, unif" + END, 5, first_uniforms=20)
    assert lengths(result)[2] == (3 + 4) * SLOT


@pytest.mark.parametrize(("between", "stall"), [(0, 11), (6, 5), (11, 0), (30, 0)])
def test_a_line_is_fetched_two_words_ahead(between: int, stall: int) -> None:
    """Word 14 asks for it; its 51 clocks are 13 slots, of which words 14 and 15 hide two."""
    text = "mov r0, unif\n" * 16 + "nop\n" * between + "mov r0, unif" + END
    result = shaded(text, 5)
    assert lengths(result)[2] == (11 + 16 + between + stall + 4) * SLOT


def test_words_are_counted_as_the_chip_counts_them() -> None:
    result = shaded("mov r0, unif\n" * 5 + END, 3)
    assert result.qpus[0].common.uniforms == 3 * (5 + 2)


# -- textures

LOOK = "mov t0s, r0\nnop ; nop ; ldtmu0\n"


@pytest.mark.parametrize(
    ("lines", "cached", "stall"),
    [([1], True, 9), ([1], False, 12), ([192], False, 20)],
    ids=["its own cache", "L2 cache", "memory"],
)
def test_stalls_of_a_lookup(lines: list[int], cached: bool, stall: int) -> None:
    """As Sugizaki measured them. Before it the other TMU brings line 1 into the L2 cache."""
    before = "mov t1s, r0\nnop ; nop ; ldtmu1\nmov t1s, r0\nnop ; nop ; ldtmu1\n" + "nop\n" * 60
    own = LOOK + "nop\n" * 16 if cached else ""
    first = [[1], [2]]  # line 192 is in a bank that has no open row
    last = [[1], lines] if cached else [lines]
    result = shaded(before + own + LOOK + END, lines=[[*first, *last]])
    waits = [clocks for first, _, clocks in result.segments if clocks]
    assert round(waits[-1] / SLOT) == stall


def test_results_come_in_order_and_hide_each_other() -> None:
    """Three requests to a TMU of 16 clocks a vector: only the first one waits 9 slots."""
    text = "mov t0s, r0\n" * 3 + "nop ; nop ; ldtmu0\n" * 3 + END
    result = shaded(text, 6, lines=[[[1]] * 3])
    waits = 9 * SLOT - 2 * SLOT  # of the first
    assert lengths(result)[3] == (3 + 3 + 3) * SLOT + waits + 2 * (16 - SLOT)


@pytest.mark.parametrize(("threads", "stall"), [(1, 0), (2, 12)])
def test_a_full_request_queue_stalls(threads: int, stall: int) -> None:
    """The seventh request, at clock 24, is the fifth that waits: until the third is taken, at 33.

    A thread that shares its QPU has room for four words.
    """
    text = "mov t0s, r0\n" * 7 + "nop ; nop ; ldtmu0\n" * 7 + END
    result = shaded(text, 1, threads=threads, lines=[[[1]] * 7])
    assert result.stall(Cause.TMU_ROOM) == stall
    assert result.qpus[0].common.lookups == 7


def test_lines_are_those_of_the_vectors_quads() -> None:
    """Lines of other quads of the block are not looked up."""
    other = 1 << 24
    result = shaded(LOOK + END, 1, lines=[[[5, 6 | other, 7, 8 | other]]])
    assert result.misses("tmu") == 2


def test_results_that_are_not_read_are_dropped() -> None:
    result = shaded("mov t0s, r0\n" + LATE, 20, lines=[[[1]]])
    assert result.clocks > 0


def test_a_result_that_was_not_asked_for() -> None:
    assert shaded("nop ; nop ; ldtmu0\n" + LATE, 3).clocks > 0


# -- two threads

SWITCHING = "mov t0s, r0\nnop ; nop ; {}\nnop\nnop\nnop ; nop ; ldtmu0\n" + "nop\n" * 8 + LATE


def test_the_other_thread_hides_the_latency() -> None:
    lines = [[[number]] for number in range(40)]
    text = SWITCHING.format("lthrsw")
    one = shaded(SWITCHING.format("lthrsw"), 40, threads=1, lines=lines)
    two = shaded(text, 40, threads=2, lines=lines)
    assert two.stall(Cause.TMU_RESULT) < one.stall(Cause.TMU_RESULT) / 2
    assert two.clocks < 0.75 * one.clocks
    issue = 40 * 17 * SLOT
    assert two.clocks > issue


def test_a_lone_thread_goes_on_when_its_result_is_there() -> None:
    """Request, switch, two more: the load has 6 of the 9 slots to wait for."""
    result = shaded(SWITCHING.format("lthrsw"), 5, lines=[[[1]]])
    assert lengths(result)[3] == (4 + 6 + 9 + 4) * SLOT


def test_threads_end_in_order() -> None:
    """The second one asks for nothing, and still does not pass the first one's colour."""
    programs = [SWITCHING.format("lthrsw"), "nop ; nop ; lthrsw\nnop\nnop\n" + LATE]
    lines = [[[number]] for number in range(20)]
    assert in_order(shaded(programs, 20, threads=2, lines=lines, places=1))


def test_programs_that_share_a_qpu_and_never_switch() -> None:
    assert in_order(shaded("nop\n" * 10 + LATE, 9, threads=2, places=1))


def test_a_switch_that_is_not_marked_as_the_last_one() -> None:
    programs = [SWITCHING.format("thrsw"), LATE]
    assert shaded(programs, 20, threads=2, lines=[[[1]]]).clocks > 0


# -- scoreboard


def in_order(result: Shaded) -> bool:
    """Whether vectors of the same place ended in their order."""
    ends = [result.ends[number] for number in range(len(result.ends))]
    return all(before < after for before, after in pairwise(ends))


def test_vectors_of_the_same_quad_write_in_order() -> None:
    """The first one of each four is long: the others wait before their colour."""
    programs = ["nop\n" * 60 + LATE, LATE, LATE, LATE]
    result = shaded(programs, 16, qpus=4, places=1)
    assert in_order(result)
    assert result.stall(Cause.SCOREBOARD) > 0


def test_vectors_of_other_quads_pass() -> None:
    programs = ["nop\n" * 60 + LATE, LATE, LATE, LATE]
    result = shaded(programs, 16, qpus=4)
    assert not in_order(result)
    assert result.stall(Cause.SCOREBOARD) == 0


def test_a_vector_that_writes_nothing_keeps_its_place() -> None:
    assert in_order(shaded(["nop\n" * 60 + END, LATE], 8, qpus=4, places=1))


def test_the_tile_locked_early_or_late() -> None:
    """Where four quads are drawn over again and again: 2 to 4 times slower, as silicon.md says."""
    body = "nop\n" * 30
    early = "nop\nnop\n" + EARLY_LOCK + body + LATE
    first, last = (shaded(text, 400, qpus=4, slices=3, places=4) for text in (early, body + LATE))
    assert 2 < first.clocks / last.clocks <= 4.2
    assert last.stall(Cause.SCOREBOARD) < first.stall(Cause.SCOREBOARD) / 10
    apart = shaded(early, 400, qpus=4, slices=3)
    assert apart.stall(Cause.SCOREBOARD) == 0


@pytest.mark.parametrize("whole", [False, True])
def test_triangles_that_share_a_quad_and_no_pixel(whole: bool) -> None:
    text = "nop\nnop\n" + EARLY_LOCK + "nop\n" * 30 + LATE
    pixels = np.where(np.arange(80) % 2, 0b0011, 0b1100)
    result = shaded(text, 80, qpus=4, places=1, covered=pixels, whole_quads=whole)
    held = 35 * SLOT
    assert (result.clocks > 80 * held) == whole
    assert result.clocks > 40 * held  # two hold it at a time


def test_only_so_many_hold_a_lock() -> None:
    text = "nop\nnop\n" + EARLY_LOCK + "nop\n" * 30 + LATE
    one, four = (shaded(text, 80, qpus=4, locks=locks) for locks in (1, 4))
    assert 3 < one.clocks / four.clocks < 4.5


def test_a_lock_that_is_given_back_early() -> None:
    body = "nop\n" * 30
    text = "nop\nnop\nmov tlbc, 0\nnop ; nop ; sbdone\n" + body + END
    held = "nop\nnop\nmov tlbc, 0\n" + body + END
    free, kept = (shaded(one, 60, qpus=4, places=1) for one in (text, held))
    assert free.clocks < kept.clocks / 2


# -- units


def test_the_sfu_is_shared_by_a_slice() -> None:
    """Four QPUs that use it in every second slot need it twice as often as it can."""
    text = "mov recip, r0\nnop\n" * 30 + END
    one, four, apart = (
        shaded(text, 40, qpus=qpus, slices=slices) for qpus, slices in ((1, 1), (4, 1), (1, 4))
    )
    assert one.stall(Cause.SFU) == apart.stall(Cause.SFU) == 0
    assert four.stall(Cause.SFU) > 0
    assert four.clocks >= 40 * 30 * SLOT


def test_varyings_have_a_rate() -> None:
    text = "mov r0, vary\n" * 8 + END
    fast, slow = (shaded(text, 5, varying_interval=clocks) for clocks in (4, 16))
    assert lengths(fast)[3] == (8 + 3) * SLOT  # the first one came while the thread before ended
    assert lengths(slow)[3] == 8 * 16  # the next thread's are made while a thread ends
    four = shaded(text, 40, qpus=4, varying_interval=4)
    assert four.clocks >= 40 * 8 * 4


def test_colours_that_are_read_take_a_while() -> None:
    text = "nop\nnop\nnop ; nop ; loadc\n" + LATE
    plain = "nop\nnop\nnop\n" + LATE
    read, not_read = (lengths(shaded(one, 5))[3] for one in (text, plain))
    assert read - not_read == 8


def test_accesses_to_the_tile_buffer_are_counted() -> None:
    result = shaded("nop\nnop\nnop ; nop ; loadc\nmov tlbz, r0\n" + LATE, 3)
    assert result.qpus[0].first.accesses == 3


VERTICES = "ldi vr_setup, 0x201a00\nmov r0, vpm\nldi vw_setup, 0x1a00\nmov vpm, r0\n" + END


def test_vertex_shaders_read_and_write_the_vpm() -> None:
    """Five slots after the set-up, as measured (QV56)."""
    result = shaded(VERTICES, 5, batches=True)
    assert lengths(result)[3] == (7 + 5) * SLOT
    assert result.stall(Cause.VPM_READ) == 5 * 5 * SLOT


# -- loops and branches

LOOP = "nop\nagain: nop\nnop\nbrr.anyz -, again\nnop\nnop\nnop\nnop" + END


@pytest.mark.parametrize("rounds", [1, 9])
def test_loops_take_the_clocks_of_their_rounds(rounds: int) -> None:
    count = 1 + 6 * rounds + 4
    result = shaded(LOOP, 5, instructions=count)
    assert lengths(result)[3] == count * SLOT
    again = next(run for first, run, _ in result.segments if first == 1)
    assert again == 5 * rounds


# -- and as user programs

PARTS = (
    "nop\n", "mov r1, r2\n", "mov recip, r1\n",
    "mov r3, unif\nmov t0s, r3\n{0}nop ; nop ; ldtmu0\n",
    "mov r3, unif\nmov t1s, r3\n{0}nop ; nop ; ldtmu1\n", "mov r3, unif\nmov r3, unif\n",
)  # fmt: skip


def straight(seed: int) -> tuple[str, list[int]]:
    """A program without branches, and its uniforms: addresses that are looked up."""
    draw = random.Random(seed)
    text = ""
    words: list[int] = []
    for _ in range(draw.randrange(1, 60)):
        part = draw.choice(PARTS).format("nop\n" * draw.randrange(12))
        text += part
        words += [DATA + 64 * draw.randrange(200)] * part.count("unif")
    return text + END, words


@pytest.mark.parametrize("seed", range(40))
def test_the_same_clocks_as_a_user_program(seed: int, tmp_path: Path) -> None:
    # refreshes come at other moments of the two; the same lines are texels of one of them
    calm = tmp_path / "calm.toml"
    calm.write_text(
        'like = "videocore4"\n[sdram]\nrefresh_interval = 0\n[l2]\ninterval = 7\ntexel_interval = 7\n'
    )
    text, words = straight(seed)
    reads = [line for line in text.split("\n") if "unif" in line or "t0s" in line or "t1s" in line]
    stream = iter(words)
    lines: list[list[int]] = []
    word = 0
    for line in reads:
        if "unif" in line:
            word = next(stream)
        else:
            lines.append([word >> 6])
    mine = shaded(text, lines=[lines], chip=str(calm))
    theirs = timed(text, [words], qpus=1, chip=str(calm)).qpus[0]
    clocks = mine.clocks - int(mine.qpus[0].first.started)
    assert clocks == theirs.ended - theirs.started
    named = {CAUSE_TEXT[cause]: clocks for cause, clocks in mine.stalls().items()}
    assert named == {cause: clocks for cause, clocks in theirs.stalls.items() if clocks}


# -- what comes out


def test_programs_that_wait_for_ever_are_named() -> None:
    """Four results that are not read, eight words in the queue: there is no room for more."""
    result = shaded("mov t0s, r0\n" * 14 + LATE, 1, lines=[[[1]] * 14], complete=False)
    assert not result.ends
    assert standing_threads(result.machine) == ["QPU 0, vector 0: at 0x00010060: TMU request queue full"]


def test_stalls_are_those_of_an_instruction() -> None:
    text = "nop\nmov t0s, r0\nnop ; nop ; ldtmu0\n" + LATE
    result = shaded([text, text + "nop\n"], 6, lines=[[[1]]])
    first, second = result.uses()
    assert (first.kind, first.threads) == ("", 3)
    assert first.instructions == 3 * 7
    hot = {one.address: one for one in second.hot}
    load = hot[second.code + 2 * 8]
    assert "ldtmu0" in load.text
    assert load.executed == 3
    assert set(load.stalls) <= {"TMU result", "instruction cache"}
    assert load.clocks == 3 * SLOT + sum(load.stalls.values())
    assert second.clocks == second.instructions * SLOT + sum(second.stalls.values())


def test_texels_in_several_lines_take_the_tmu_longer() -> None:
    """Two clocks for each line of a quad beyond one; each of the four quads has its own."""
    text = "mov t0s, r0\nnop ; nop ; ldtmu0\n" + LATE
    one, two = (shaded(text, 1, lines=[[lines]]).clocks for lines in ([1], [1, 2]))
    assert two > one
