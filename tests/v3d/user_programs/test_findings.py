"""What user programs do wrong, as messages of both engines; programs that are read and compiled."""

import pytest
from tests.support.compute import DATA, END, ENGINES, Board, run
from tests.v3d.user_programs.test_vpm_dma import write_rows

from vc4lab.memory import GuestMemory
from vc4lab.qpu.run.environment import Unsupported
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS
from vc4lab.v3d.user_programs import code
from vc4lab.v3d.user_programs.native import compiled

RAM = 64 << 20
STORE = f"ldi vw_setup, {2 << 30 | 1 << 23 | 1 << 16 | 1 << 14}\nldi vw_setup, 0xc0000000\n"
"""One word."""
LOAD = f"ldi vr_setup, {1 << 31 | 1 << 20 | 1 << 16}\n"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sides", [("vr_setup",), ("vw_setup",), ("vr_setup", "vw_setup")])
def test_setup_words_of_the_reserved_type_change_nothing(sides: tuple[str, ...], engine: str) -> None:
    """Rows 0 and 1 are copied to 16 and 17, as the setups before say."""
    program = write_rows(0, 2) + "ldi vr_setup, 0x201a00\nldi vw_setup, 0x1a10\n"
    program += "".join(f"ldi {side}, 0x40501a04\n" for side in sides)
    program += "nop\nnop\nmov r0, vpm\nmov vpm, r0\nmov r0, vpm\nmov vpm, r0\n"
    outcome = run(engine, program + END)
    assert outcome.vpm[16:18, 3].tolist() == [3, 103]
    assert not outcome.vpm[4:6].any()
    assert outcome.codes == {"QPU-055": 1}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("transfer", [STORE + "ldi vw_addr, ", LOAD + "ldi vr_addr, "])
@pytest.mark.parametrize(
    ("address", "outside"),
    [
        (RAM - 4, False),
        (0xC0000000 | RAM - 4, False),
        (RAM - 3, True),
        (RAM, True),
        (0x80000000 | RAM, True),
        (0xFFFFFFFC, True),
    ],
)
def test_a_transfer_outside_the_ram(transfer: str, address: int, outside: bool, engine: str) -> None:
    board = Board(engine)
    board.start(f"{transfer}{address}\nnop\nmov -, vw_wait\nmov -, vr_wait{END}")
    board.finish()
    found = [(item.code, item.address) for item in board.reporter.items]
    assert found == ([("QPU-056", address)] if outside else [])


def test_a_program_that_cannot_be_compiled_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refuse(*arguments: object, **_options: object) -> None:
        tried.append(arguments)
        raise Unsupported("QPU-043", "a test")

    monkeypatch.setattr(compiled, "compile_user_program", refuse)
    board = Board("jit")
    program = board.load(f"ldi vw_setup, 0x1a00\nmov vpm, unif{END}")
    for value in (5, 6):
        board.start(program, (value,))
        assert set(board.finish().vpm[0].tolist()) == {value}
    assert len(tried) == 1
    assert board.reporter.counts == {"QPU-057": 2}


def test_the_programs_used_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MAX_PROGRAMS", 2)
    memory = GuestMemory()
    for place in (1, 2, 3):
        memory.write(0x1000 * place, assemble(f"ldi r0, {place}{END}").bytes)
    cache = code.CodeCache(memory, DEFAULT_UNKNOWNS)
    first, second = cache.read(0x1000), cache.read(0x2000)
    assert cache.read(0x1000) is first
    third = cache.read(0x3000)
    assert cache.read(0x1000) is first, "used after the second"
    assert cache.read(0x3000) is third
    assert cache.read(0x2000) is not second
    assert cache.read(0x2000).program == second.program


def test_a_program_that_changed_in_memory_is_read_again() -> None:
    board = Board("jit")
    program = board.load(f"ldi vw_setup, 0x1a00\nldi r0, 5\nmov vpm, r0{END}")
    for value in (5, 6, 6):
        board.memory.write(
            program, assemble(f"ldi vw_setup, 0x1a00\nldi r0, {value}\nmov vpm, r0{END}").bytes
        )
        board.start(program)
        assert set(board.finish().vpm[0].tolist()) == {value}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_load_of_one_word(engine: str) -> None:
    """The transfers of the tests above are what they are meant to be."""
    program = f"{LOAD}ldi vr_addr, {DATA}\nmov -, vr_wait\n{STORE}ldi vw_addr, {DATA + 64}\n"
    outcome = run(engine, f"{program}mov -, vw_wait{END}", data=[77, 78])
    assert outcome.vpm[0, :3].tolist() == [77, 0, 0]
    assert outcome.memory[16:18].tolist() == [77, 0]
    assert not outcome.codes
