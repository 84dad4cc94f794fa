"""A session executes what a run executes, stops where it is told, and goes back to the same state."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.support.debug_sessions import digest, experiment_of, floats, saxpy, session_of
from tests.v3d.user_programs.test_random_programs import program

from vc4lab.debug import history
from vc4lab.debug.expressions import Expression, ExpressionError
from vc4lab.debug.programs import ProgramStage
from vc4lab.debug.session import Session
from vc4lab.debug.source import Source
from vc4lab.debug.stops import Cause

END = "nop ; nop ; thrend\nnop\nnop\n"
LOOP = f"""
        mov  r0, 0
loop:   add  r0, r0, 1
        sub.setf -, r0, 5
        brr.anynz -, loop
        nop
        nop
        nop
        {END}"""
HANDS = f"""
        mov.setf -, qpu_num
        brr.anynz -, second
        nop
        nop
        nop
        srel -, 1
        sacq -, 2
        {END}
second: sacq -, 1
        mov  ra5, 7
        srel -, 2
        {END}"""


@pytest.mark.parametrize("seed", range(6))
def test_it_executes_what_a_run_does(seed: int) -> None:
    """Random programs: memory, VPM and the number of instructions; and going back to any turn."""
    r = random.Random(seed)
    code = b"".join(struct.pack("<Q", word) for word in program(r, 0, False))
    data = np.random.default_rng(seed).integers(0, 1 << 32, 1 << 14, np.uint32)
    stream = ", ".join(["data", "own", "2", *(str(r.getrandbits(32)) for _ in range(400))])
    qpus = 1 + seed % 3
    found = []
    for stepped in (False, True):
        experiment = experiment_of(code, ["data=65536", "own=65536"])
        experiment.memory.array(experiment.areas["data"].address, len(data), "u4")[:] = data
        if stepped:
            session = Session(ProgramStage(experiment, Source(Path("p"), code), qpus, [stream]))
            digests = {0: digest(session)}
            while session.proceed(37).cause is Cause.LIMIT:
                digests[session.turn] = digest(session)
            assert session.stop.cause is Cause.ENDED
            count = sum(qpu.instructions for qpu in session.qpus.values())
        else:
            count = experiment.run(qpus, [stream]).instructions
        areas = [experiment.memory.read(a.address, a.size) for a in experiment.areas.values()]
        messages = sorted(map(str, experiment.reporter.items))
        vpm = bytes(experiment.programs.unit.shared.vpm)
        found.append((count, areas, vpm, messages))
    assert found[0] == found[1]
    end = digest(session)
    for turn in r.sample(sorted(digests), min(8, len(digests))):
        session.go_to(turn)
        assert digest(session) == digests[turn], turn
    session.proceed()
    assert digest(session) == end


def test_checkpoints_become_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_CHECKPOINTS", 4)
    monkeypatch.setattr(history, "FIRST_INTERVAL", 8)
    session = saxpy()
    session.history.interval = 8
    digests = {0: digest(session)}
    while session.proceed(11).cause is Cause.LIMIT:
        digests[session.turn] = digest(session)
    assert session.history.interval > 8
    assert len(session.history.checkpoints) <= 5
    for turn, expected in reversed(digests.items()):
        session.go_to(turn)
        assert digest(session) == expected


def test_what_was_overwritten_is_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_OVERWRITTEN", 100)
    session = saxpy()
    session.proceed()
    assert floats(session, "y")[3] == 7
    assert session.proceed_back().cause is Cause.START
    assert session.stop.text == "what was before is no longer kept" or session.turn > 0
    assert session.turn > 0
    with pytest.raises(ValueError, match="memory is kept from turn"):
        session.go_to(0)


def test_steps_and_lines() -> None:
    session = session_of(LOOP)
    session.step()
    session.step()
    assert session.register("r0") == [1] * 16
    assert session.place() is not None
    assert session.place().line == 4  # type: ignore[union-attr]
    session.back()
    assert session.register("r0") == [0] * 16
    session.step_line(7)
    assert session.place().line == 4  # type: ignore[union-attr]
    assert session.register("r0") == [2] * 16
    session.back_line()
    assert session.place().line == 3  # type: ignore[union-attr]
    assert session.back(100).cause is Cause.START
    assert session.turn == 0


def test_a_subroutine_as_a_whole() -> None:
    session = session_of(
        f"brr ra31, f\nnop\nnop\nnop\nmov ra2, 2\n{END}\nf: mov ra1, 1\nbra -, ra31\nnop\nnop\nnop\n"
    )
    session.step_over()
    assert session.register("ra1") == [1] * 16
    assert session.place().line == 5  # type: ignore[union-attr]


def test_breakpoints_and_back_to_them() -> None:
    session = session_of(LOOP)
    loop = session.add_address(session.locate("loop"), condition=Expression("r0 == 3"))
    assert session.proceed().breakpoint is loop
    assert session.register("r0") == [3] * 16
    first = session.turn
    loop.condition = None
    session.proceed()
    assert session.register("r0") == [4] * 16
    session.proceed()
    assert session.stop.cause is Cause.ENDED
    assert session.proceed_back().breakpoint is loop
    assert session.register("r0") == [4] * 16
    session.proceed_back()
    assert session.turn == first
    loop.skip = 1
    session.proceed()
    assert session.stop.cause is Cause.ENDED


def test_a_temporary_one_stops_once() -> None:
    session = session_of(LOOP)
    session.add_address(session.locate("loop"), temporary=True)
    session.proceed()
    assert session.stop.cause is Cause.BREAKPOINT
    assert session.proceed().cause is Cause.ENDED


def test_values_and_conditions_of_lanes() -> None:
    session = session_of(f"mov r0, elem_num\nshl r0, r0, 1\nmov ra3, r0\n{END}")
    watch = session.breakpoints.add_watch(Expression("ra3[5]"))
    when = session.breakpoints.add_watch(Expression("all(r0 == lane)"), becomes=True)
    assert session.proceed().breakpoint is when
    assert session.turn == 1
    stop = session.proceed()
    assert (stop.breakpoint, stop.text) == (watch, "ra3[5]: 0 → 10")
    assert session.proceed_back().breakpoint is when


def test_accesses_to_memory() -> None:
    """Of the uniforms, of the texture unit and of both ways of the DMA."""
    session = saxpy(qpus=1)
    x, y = (session.experiment.areas[name].address for name in "xy")
    points = session.breakpoints
    points.add_access(0x100008, 4, reads=True, writes=False)
    assert session.proceed().text == "QPU 0 reads 4 bytes at 0x00100008"
    assert session.evaluate("ra2.f[0]") == 2.0
    points.delete(1)
    points.add_access(x + 64, 64, reads=True, writes=False)
    session.proceed()
    assert session.stop.text == f"QPU 0 reads 64 bytes at 0x{x + 64:08x}"
    points.delete(2)
    points.add_access(y + 100, 1, reads=False, writes=True)
    session.proceed()
    assert session.stop.text == f"QPU 0 writes 64 bytes at 0x{y + 64:08x}"
    assert floats(session, "y")[16] == 33
    assert session.back().cause is Cause.STEP
    assert floats(session, "y")[16] == 1
    assert session.proceed_back().cause is Cause.START


def test_a_dma_load_is_an_access() -> None:
    session = session_of(
        f"ldi vr_setup, 0x80110000\nmov vr_addr, unif\nmov -, vr_wait\n{END}", 1, ["a"], ["a=64"]
    )
    session.breakpoints.add_access(session.experiment.areas["a"].address, 4, reads=True, writes=False)
    assert session.proceed().cause is Cause.ACCESS
    assert session.turn == 2


def test_bkpt_stops_and_is_passed_over() -> None:
    session = session_of(f"mov ra0, 1\nmov ra1, 1 ; nop\nnop ; nop ; bkpt\nmov ra2, 1\n{END}")
    assert session.proceed().cause is Cause.BKPT
    assert session.turn == 2
    assert session.proceed().cause is Cause.ENDED
    assert session.proceed_back().cause is Cause.BKPT


def test_messages_stop_again_after_going_back() -> None:
    session = session_of(f"mov r0, unif\nmov r0, unif\n{END}", 1, ["5"])
    session.breakpoints.add_message("QPU-062")
    for _ in range(2):
        stop = session.proceed()
        assert stop.cause is Cause.MESSAGE
        assert "uniform 2 is read, but 1 was given" in stop.text
        assert [item.code for _, item in session.messages] == ["QPU-062"]
        session.restart()
        assert session.messages == []


def test_programs_that_wait() -> None:
    session = session_of(HANDS, 2)
    session.selected = 1
    assert session.step(7).cause is Cause.STEP
    assert session.register("ra5") == [7] * 16
    assert session.proceed().cause is Cause.ENDED
    assert session.evaluate("sem[1]") == 0


def test_a_deadlock_stops() -> None:
    session = session_of(f"mov ra0, 1\nsacq -, 3\n{END}", 2)
    told: list[str] = []
    session.on_message = lambda item: told.append(item.code)
    stop = session.proceed()
    assert stop.cause is Cause.DEADLOCK
    assert "waits for an increment of semaphore 3" in stop.text
    assert told == ["QPU-050"]
    assert session.proceed().cause is Cause.DEADLOCK
    assert session.back().cause is Cause.STEP


def test_faults_stop() -> None:
    session = session_of("mov r0, vpm\nmov r0, r0\n" + END)
    assert session.proceed().cause is Cause.FAULT
    assert "without a read setup" in session.stop.text
    session = session_of("loop: brr -, loop\nnop\nnop\nnop\n" + END, budget=1000)
    assert session.proceed().cause is Cause.FAULT
    assert "without an end" in session.stop.text


def test_changes_are_part_of_the_history() -> None:
    session = saxpy(qpus=1, vectors=2)
    session.step(3)
    session.assign("ra2", "10.0")
    session.proceed()
    assert floats(session, "y")[3] == 31
    end, turns = digest(session), session.turn
    session.go_to(2)
    session.proceed()
    assert (digest(session), session.turn) == (end, turns)
    session.restart()
    session.assign("mem[x]", "4.0")  # what comes later is forgotten
    session.proceed()
    assert floats(session, "y")[0] == 9
    assert floats(session, "y")[3] == 7
    session.restart()
    assert session.evaluate("memf[x]") == 4.0


def test_lanes_and_flags_are_given_values() -> None:
    session = session_of(f"mov ra1, 3\nmov.zs ra1, 5\n{END}")
    session.step()
    session.assign("ra1[4]", "r0[0] - 1")
    session.assign("z[2]", "1")
    session.step()
    lanes = session.register("ra1")
    assert (lanes[2], lanes[3], lanes[4]) == (5, 3, 0xFFFFFFFF)
    for target in ("r9", "ra1[16]", "foo", "qpu", "1 + 1"):
        with pytest.raises(ExpressionError):
            session.assign(target, "1")


def test_a_pause_stops_before_the_next_turn() -> None:
    session = session_of("loop: brr -, loop\nnop\nnop\nnop\n" + END)
    session.pause()
    assert session.proceed().cause is Cause.PAUSED
    assert session.turn == 0
    assert session.proceed(10).cause is Cause.LIMIT


def test_textures_are_sampled_again_after_going_back() -> None:
    """Slots of textures are filled again; which lines of memory a sample reads is seen."""
    text = f"""
        mov  t0t, 0
        mov  t0s, 0
        nop ; nop ; ldtmu0
        mov  ra5, r4
        {END}"""
    session = session_of(text, 1, ["tex, 0x40040"], ["tex=4096"])  # 4 x 4, RGBA8888
    area = session.experiment.areas["tex"]
    session.memory.write(area.address, bytes(range(1, 65)))
    session.breakpoints.add_access(area.address, 64, reads=True, writes=False)
    assert session.proceed().cause is Cause.ACCESS
    session.proceed()
    value = session.register("ra5")
    assert any(value)
    session.restart()
    session.proceed()
    session.proceed()
    assert session.register("ra5") == value
