"""Branches to registers, to code that no other branch reaches, anywhere; long programs."""

import random

import pytest
from tests.support.compute import CODE, END, ENGINES, Board, Outcome

from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.user_programs import code as code_rooms
from vc4lab.v3d.user_programs.code import NativeRegion, Place, UserProgram

STORE = """
    ldi vw_setup, 0x1a00
    mov vpm, r3
    ldi vw_setup, 0x80904000
    mov vw_addr, ra31
    mov -, vw_wait
"""
SLOTS = "    nop\n    nop\n    nop\n"


def both(program: str, uniforms: list[int], extra: dict[int, str] | None = None, entry: int = 0) -> Outcome:
    """The program on both engines, with more code at other addresses; they must agree."""
    outcomes = []
    for engine in ENGINES:
        board = Board(engine)
        at = board.load(program)
        assert at == CODE
        for address, text in (extra or {}).items():
            board.memory.write(address, assemble(text, address=address).bytes)
        board.start(at + entry, uniforms)
        outcomes.append((board, board.finish()))
    (golden_board, reference), (native_board, native) = outcomes
    assert reference.differences(native) == []
    assert [str(i) for i in golden_board.reporter.items] == [str(i) for i in native_board.reporter.items]
    return native


DATA = 0x100000
HEAD = "    mov ra31, unif\n    mov r3, 0\n"


def test_a_table_of_subroutines_after_the_last_end() -> None:
    """Entries of four instructions; each is called many times, by a number in memory."""
    calls = "".join(f"    mov ra1, unif\n    nop\n    bra ra2, ra1\n{SLOTS}" for _ in range(40))
    table = "".join(f"    bra -, ra2\n    add r3, r3, {k}\n    nop\n    nop\n" for k in range(1, 9))
    text = HEAD + calls + STORE + END
    start = CODE + len(assemble(text).bytes)
    numbers = [random.Random(5).randrange(8) for _ in range(40)]
    found = both(text + table, [DATA, *(start + 32 * k for k in numbers)])
    assert (found.codes, found.completed) == ({}, 1)
    assert (found.memory[:16] == sum(k + 1 for k in numbers)).all()


@pytest.mark.parametrize("where", [CODE - 0x200, CODE + 0x8000, 0x2000000])
def test_code_anywhere(where: int) -> None:
    """Before the entry, after it, in another buffer; it calls code of its own."""
    text = f"{HEAD}    mov ra1, unif\n    nop\n    bra ra2, ra1\n{SLOTS}{STORE}{END}"
    other = f"""
        add r3, r3, 1
        brr ra3, more
    {SLOTS}
        bra -, ra2
    {SLOTS}
    {"    nop" * 0}
    more:
        add r3, r3, 2
        bra -, ra3
    {SLOTS}
    """
    found = both(text, [DATA, where], {where: other})
    assert (found.codes, found.completed) == ({}, 1)
    assert (found.memory[:16] == 3).all()


def test_a_relative_branch_by_a_register() -> None:
    """py-videocore: the branch is the last thing that a reader can follow."""
    text = HEAD + "    ldi ra1, 16\n    nop\n    brr -, ra1\n" + SLOTS
    text += "    add r3, r3, 1\n" * 2 + "    add r3, r3, 1\n" * 2 + STORE + END
    found = both(text, [DATA])
    assert (found.codes, found.completed) == ({}, 1)
    assert (found.memory[:16] == 2).all()


def test_code_that_is_found_late_sees_everything() -> None:
    """Flags, special functions and old registers that nothing looked at before."""
    text = f"""
    {HEAD}
        mov ra2, unif
        mov ra5, 7
        sub.setf -, elem_num, 5
        mov recip, 2.0
        bra -, ra2
        mov ra5, elem_num
        fmul r1, 1.0, 1.0
        mov ra6, 3
    """
    late = f"""
        mov r3, ra6
        mov.cs r3, 8
        add.zs r3, r3, ra5
        or r3, r3, r4
    {STORE}
    {END}
    """
    found = both(text, [DATA, 0x200000], {0x200000: late})
    assert (found.codes, found.completed) == ({}, 1)
    assert len(set(found.memory[:16])) > 2


def test_delay_slots_reach_across() -> None:
    """A branch in the last delay slots of one that leads out: what is due comes there."""
    text = f"{HEAD}    mov ra1, unif\n    nop\n    bra ra2, ra1\n    nop\n    nop ; nop ; thrend\n"
    text += "    add r3, r3, 1\n"
    found = both(text, [DATA, 0x200000], {0x200000: "    add host_int, r3, 1\n" + END})
    assert (found.completed, found.interrupts) == (1, 1)


@pytest.mark.parametrize(
    ("target", "code"), [(CODE + 4, "QPU-042"), (0x300000, "QPU-047"), (0xFFFFFFF0, "QPU-047")]
)
def test_where_no_code_can_be(target: int, code: str) -> None:
    """Both engines name the branch."""
    text = f"{HEAD}    mov ra1, unif\n    nop\n    bra -, ra1\n{SLOTS}{END}"
    found = both(text, [DATA, target])
    assert (found.codes, found.completed) == ({code: 1}, 0)
    if code == "QPU-042":
        assert f"0x{CODE + 32:08x}" in found.messages
        assert f"0x{target:08x}" in found.messages


def test_an_endless_walk_through_memory_has_a_budget() -> None:
    """Two pieces that send each other on and on, without a loop in either."""
    text = f"{HEAD}    mov ra1, unif\n    mov ra2, unif\n    nop\n    bra -, ra1\n{SLOTS}{END}"
    there = {0x200000: f"    bra -, ra2\n{SLOTS}", 0x210000: f"    bra -, ra1\n{SLOTS}"}
    for engine in ENGINES:
        board = Board(engine, budget=5000)
        at = board.load(text)
        for address, more in there.items():
            board.memory.write(address, assemble(more, address=address).bytes)
        board.start(at, [DATA, 0x200000, 0x210000])
        assert board.finish().codes == {"QPU-041": 1}


# -- long programs ---------------------------------------------------------------------------------


@pytest.fixture
def small_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_rooms, "MAX_PLACES", 40)
    monkeypatch.setattr(code_rooms, "SMALL_REGION", 10)
    monkeypatch.setattr(code_rooms, "LONG_PROGRAM", 100)


@pytest.mark.parametrize("seed", range(6))
def test_regions_join_without_a_seam(seed: int, small_regions: None) -> None:
    """Loops and hazards across the borders of what is compiled together."""
    r = random.Random(seed)
    lines = ["mov ra31, unif", "mov r3, elem_num", "mov ra0, unif", "loop:"]
    for _ in range(r.randrange(60, 140)):
        lines.append(
            r.choice(
                [
                    "add.setf r3, r3, r1", "mov.ns r1, r3", "fadd r2, r2, r3", "ror r1, r1, 5",
                    "mov ra4, r3", "add r3, r3, ra4", "mov recip, r2", "mov r1, r4",
                    "fmul r2, r4, r2", "xor rb3, r1, rb3", "mov.cs r3, rb3", "itof r2, r1",
                    "mov r5quad, r3", "mul24 r1, r1, r5",
                ]
            )
        )  # fmt: skip
    lines += ["sub ra0, ra0, 1", "nop", "sub.setf -, ra0, 1", "brr.any_nc -, loop", SLOTS]
    lines += ["add r3, r3, r1", "xor r3, r3, r2"]
    found = both("\n".join(lines) + STORE + END, [DATA, 7])
    assert (found.codes, found.completed) == ({}, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_of_64_ki_instructions(engine: str) -> None:
    lines = ["    add r3, r3, 1" if k % 64 else "    fadd r2, r2, r2" for k in range(1 << 16)]
    text = HEAD + "\n".join(lines) + STORE + END
    board = Board(engine)
    board.code = 0x400000
    board.start(text, [DATA])
    outcome = board.finish()
    assert (outcome.codes, outcome.completed) == ({}, 1)
    assert board.reporter.items == []
    assert (outcome.memory[:16] == (1 << 16) - (1 << 10)).all()


def test_what_is_jumped_over_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    region = UserProgram._region

    def counted(self: UserProgram, *arguments: object) -> object:
        found = region(self, *arguments)  # type: ignore[arg-type]
        compiled.append(len(found.region.flow.exits))
        return found

    monkeypatch.setattr(UserProgram, "_region", counted)
    text = HEAD + f"    sub.setf -, r3, 0\n    brr.all_zs -, over\n{SLOTS}"
    text += "    add r3, r3, 1\n" * 20_000 + f"over:\n    mov r3, 9\n{STORE}{END}"
    board = Board("jit")
    board.start(text, [DATA])
    outcome = board.finish()
    assert (outcome.memory[:16] == 9).all()
    assert sum(compiled) < 7000


def test_laps_through_known_code_compile_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions too small to hold all ways: those found in the first laps serve all others.

    The public SHA-256, whose subroutines call each other through registers, runs 20,000 laps.
    """
    monkeypatch.setattr(code_rooms, "MAX_PLACES", 24)
    monkeypatch.setattr(code_rooms, "SMALL_REGION", 24)
    compiled: list[int] = []
    real = UserProgram._region

    def counted(self: UserProgram, limited: bool, recorded: bool, start: Place | None) -> NativeRegion:
        found = real(self, limited, recorded, start)
        compiled.append(self.compiled)
        return found

    monkeypatch.setattr(UserProgram, "_region", counted)
    calls = "".join(f"    bra ra2, ra{12 + k % 4}\n{SLOTS}" for k in range(12))
    table = "".join(f"    bra -, ra2\n    add r3, r3, {k}\n    nop\n    nop\n" for k in range(1, 5))
    text = HEAD + "    mov ra10, unif\n"
    text += "".join(f"    mov ra{12 + k}, unif\n" for k in range(4))
    text += f"    nop\nagain:\n{calls}    sub.setf ra10, ra10, 1\n    nop\n"
    text += f"    brr.anynz -, again\n{SLOTS}{STORE}{END}"
    start = CODE + len(assemble(text).bytes)
    most = []
    for laps in (4, 400):
        compiled.clear()
        board = Board("jit")
        board.load(text + table)
        board.start(CODE, [DATA, laps, *(start + 32 * k for k in range(4))])
        found = board.finish()
        assert (found.codes, found.completed) == ({}, 1)
        assert (found.memory[:16] == laps * 3 * 10).all()
        most.append(max(compiled))
    assert most[0] == most[1]
