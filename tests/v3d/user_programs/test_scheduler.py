"""The registers of user programs, as programs that run on boards use them."""

import pytest
from tests.support.compute import CODE, DATA, ENGINES, UNIFORMS

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.core import V3D
from vc4lab.v3d.registers import BY_NAME

NOTHING = "nop ; nop ; thrend\nnop\nnop\n"
WRITE_NUMBER = "mov irq, unif\n" + NOTHING


class Chip:
    """A V3D with registers by name."""

    def __init__(self, engine: str = "jit") -> None:
        self.memory = GuestMemory(64 << 20)
        self.v3d = V3D(self.memory, Reporter(), engine=engine)

    def __getitem__(self, name: str) -> int:
        return self.v3d.read(BY_NAME[name].offset)

    def __setitem__(self, name: str, value: int) -> None:
        self.v3d.write(BY_NAME[name].offset, value)

    def load(self, text: str, address: int = CODE) -> None:
        self.memory.write(address, assemble(text).bytes)


@pytest.mark.parametrize("engine", ENGINES)
def test_sequence_of_hello_fft(engine: str) -> None:
    chip = Chip(engine)
    chip.load(WRITE_NUMBER)
    chip.memory.set_u32(UNIFORMS, 1)
    chip["DBCFG"], chip["DBQITE"], chip["DBQITC"] = 0, 0, 0xFFFFFFFF
    chip["L2CACTL"], chip["SLCACTL"] = 4, 0x0F0F0F0F
    chip["SRQCS"] = 1 << 7 | 1 << 8 | 1 << 16
    for _ in range(8):
        chip["SRQUA"], chip["SRQPC"] = UNIFORMS, CODE
    assert chip["SRQCS"] >> 16 & 0xFF == 8
    assert chip["SRQCS"] >> 8 & 0xFF == 8
    assert chip["DBQITC"] == 0xFF
    assert not chip.v3d.interrupt_pending
    chip["DBQITE"] = 1
    assert chip.v3d.interrupt_pending
    chip["DBQITC"] = 0xFFFF
    assert chip["DBQITC"] == 0
    assert not chip.v3d.interrupt_pending
    assert not chip.v3d.reporter.items


TOO_EARLY = "mov ra0, unif\nmov r0, ra0\n" + NOTHING
DATA_BETWEEN = f"brr -, on\nnop\nnop\nnop\n.quad 0x1234567\n{TOO_EARLY}on: {NOTHING}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("text", "codes"), [(TOO_EARLY, ["QPU-101"]), (NOTHING, []), (DATA_BETWEEN, [])])
def test_a_boards_programs_are_checked_once(engine: str, text: str, codes: list[str]) -> None:
    chip = Chip(engine)
    chip.load(text)
    for _ in range(2):  # a driver's programs are not
        chip["SRQUA"], chip["SRQPC"] = UNIFORMS, CODE
        chip.v3d.settle()
    assert not chip.v3d.reporter.items
    board = Chip(engine)
    board.load(text)
    board.v3d.check_programs()
    for _ in range(3):
        board["SRQUA"], board["SRQPC"] = UNIFORMS, CODE
        board.v3d.settle()
    assert [item.code for item in board.v3d.reporter.items] == codes
    for item in board.v3d.reporter.items:
        assert item.address == CODE + 8
        assert "in a user program: ra0" in item.message


def test_interrupt_line_without_a_look() -> None:
    chip = Chip()
    chip.load(WRITE_NUMBER)
    chip.memory.set_u32(UNIFORMS, 3)
    heard: list[bool] = []
    chip.v3d.on_interrupt = heard.append
    chip["DBQITE"] = 0xFFF
    chip["SRQUA"], chip["SRQPC"] = UNIFORMS, CODE
    chip.v3d.settle()
    assert heard == [True]


def test_host_interrupt_of_zero_does_nothing() -> None:
    chip = Chip()
    chip.load(WRITE_NUMBER)
    chip["SRQUA"], chip["SRQPC"] = UNIFORMS, CODE
    assert chip["DBQITC"] == 0
    assert chip["SRQCS"] >> 16 == 1


def test_queue_overflow_drops_until_acknowledged() -> None:
    chip = Chip()
    chip.load("sacq -, 0\n" + NOTHING)
    for _ in range(12 + 16):
        chip["SRQPC"] = CODE
    assert chip["SRQCS"] & 0xBF == 16
    chip["SRQPC"] = CODE
    assert chip["SRQCS"] & 0xBF == 0x80 | 16
    assert chip["SRQCS"] >> 8 & 0xFF == 29
    assert chip.v3d.reporter.has("QPU-052")
    chip["SRQCS"] = 1
    assert chip["SRQCS"] & 0xBF == 0x80
    chip["SRQPC"] = CODE
    assert chip["SRQCS"] & 0xBF == 0x80
    chip["SRQCS"] = 0x80
    chip["SRQPC"] = CODE
    assert chip["SRQCS"] & 0xBF == 1
    assert "QPU 11" in (chip.v3d.waiting or "")


def test_more_programs_than_qpus_take_turns() -> None:
    chip = Chip()
    chip.load(NOTHING)
    for _ in range(300):
        chip["SRQPC"] = CODE
    assert chip["SRQCS"] == (300 & 0xFF) << 16 | (300 & 0xFF) << 8


def test_reserved_qpus_are_left_out() -> None:
    chip = Chip()
    store = "mov r0, qpu_num\nldi vw_setup, 0x1a00\nmov vpm, r0\nldi vw_setup, 0x80904000\n"
    chip.load(store + "mov vw_addr, unif\nmov -, vw_wait\n" + NOTHING)
    chip.memory.set_u32(UNIFORMS, DATA)
    chip["SQRSV0"], chip["SQRSV1"] = 0x11111111, 0x0001
    chip["SRQUA"], chip["SRQPC"] = UNIFORMS, CODE
    assert chip["SRQCS"] >> 16 == 1
    assert chip.memory.u32(DATA) == 9
    chip["SQRSV1"] = 0x1111
    chip["SRQPC"] = CODE
    assert [chip["SRQCS"] & 0x3F for _ in range(2)] == [1, 1]
    assert chip.v3d.reporter.has("QPU-058")
    chip["SQRSV0"] = 0
    assert chip["SRQCS"] >> 16 == 2
    assert chip.memory.u32(DATA) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_vpmbase_reserves_rows(engine: str) -> None:
    chip = Chip(engine)
    chip.load("ldi vw_setup, 0x1a00 | 3\nmov vpm, 7\nmov vpm, 7\n" + NOTHING)
    chip["VPMBASE"] = 1
    chip["SRQPC"] = CODE
    assert chip["ERRSTAT"] == 1 << 7
    vpm = chip.v3d.programs.unit.shared.vpm
    assert (vpm[64 * 3], vpm[64 * 4]) == (7, 0)
    assert chip.v3d.reporter.has("QPU-059")
