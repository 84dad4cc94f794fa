"""Finding the end of a program and the words of its uniform stream."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.qpu.isa.encoding import NOP, Branch, Signal
from vc4lab.qpu.isa.registers import Write
from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.reader import reach, read_program

END = NOP.replace(signal=Signal.PROGRAM_END).encode()
NO = NOP.encode()


def memory(words: list[int], base: int = 0x1000):
    data = struct.pack(f"<{len(words)}Q", *words)

    def read(address: int, length: int) -> bytes:
        offset = (address - base) & 0xFFFFFFFF
        return data[offset : offset + length].ljust(length, b"\0")

    return read


def branch(offset: int, condition: int = 15) -> int:
    return Branch.make(
        signal=15, condition=condition, relative=1, immediate=offset & 0xFFFFFFFF,
        waddr_add=39, waddr_mul=39,
    ).encode()  # fmt: skip


def test_straight_line_ends_after_two_delay_slots() -> None:
    program = read_program(memory([NO, NO, END, NO, NO, NO, NO]), 0x1000)
    assert len(program) == 5
    assert program.address == 0x1000
    assert not program.problems
    assert not program.has_branches


def test_branch_over_an_end() -> None:
    words = [branch(8 * 2, 0), NO, NO, NO, END, NO, NO, NO, END, NO, NO]
    # target = 0 + 4 + 2 = 6: runs into the second end
    program = read_program(memory(words), 0x1000)
    assert len(program) == 11
    assert program.has_branches


def test_unconditional_branch_ends_the_path() -> None:
    words = [branch(8 * 4), NO, NO, NO, 0, 0, 0, 0, END, NO, NO]
    assert len(read_program(memory(words), 0x1000)) == 11
    loop = [branch(-32), NO, NO, NO]
    assert len(read_program(memory(loop), 0x1000)) == 4


def test_no_end() -> None:
    program = read_program(memory([NO] * 300), 0x1000, limit=200)
    assert program.problems[0].code == "QPU-001"
    assert len(program) == 200


def test_zeroed_memory() -> None:
    program = read_program(memory([NO, NO]), 0x1000)
    assert [(p.code, p.address) for p in program.problems] == [("QPU-047", 0x1010)]
    assert len(program) == 3
    assert "last instruction at 0x00001008" in program.zeroed(2)
    astray = read_program(memory([branch(8 * 8), NO, NO, NO]), 0x1000)
    assert [(p.code, p.address) for p in astray.problems] == [("QPU-047", 0x1060)]
    assert "branch" in astray.zeroed(12)
    one = read_program(memory([NO, 0, END, NO, NO]), 0x1000)
    assert one.problems == ()
    assert len(one) == 5


def test_code_before_the_entry_and_far_away() -> None:
    far = 8 * 5000
    words = [END, NO, NO, branch(-64 + 8, 0), NO, NO, NO, branch(far, 0), NO, NO, NO, END, NO, NO]
    there = {0x1018 + 8 * 8 + far + 8 * k: word for k, word in enumerate([NO, END, NO, NO])}
    near = memory(words)

    def read(address: int, length: int) -> bytes:
        data = bytearray(near(address, length))
        for at, word in there.items():
            if address <= at < address + length:
                data[at - address : at - address + 8] = struct.pack("<Q", word)
        return bytes(data)

    program = read_program(read, 0x1018)
    assert program.problems == ()
    assert len(program) == 11 + 4 + 3
    assert program.words == (*words[3:], NO, END, NO, NO, *words[:3])
    assert [program.address_of(k) for k in (0, 10, 11, 15)] == [0x1018, 0x1068, 0x1058 + far, 0x1000]
    assert all(program.index_of(program.address_of(k)) == k for k in range(len(program)))
    assert program.index_of(0x1004) is program.index_of(0x1070) is None
    assert program.after(17) == 0  # the piece before the entry runs into it
    assert program.after(10) is program.after(14) is None
    assert program.laid_out(program.layout) == program
    assert program.digest != Program(program.words, program.address).digest


def test_execution_comes_back_from_a_call() -> None:
    """To the instruction after its delay slots, which here goes far away at once."""
    call = Branch(branch(8 * 4)).replace(waddr_add=0).encode()
    far, sub = 8 * 1000, [END, NO, NO]
    words = [call, NO, NO, NO, branch(far), NO, NO, NO, *sub]
    words += [NO] * (16 + 1000 - len(words)) + [END, NO, NO]
    program = read_program(memory(words), 0x1000)
    assert program.problems == ()
    assert program.pieces == ((11, 0x1000 + 8 * 8 + far),)
    jump = [branch(8 * 4), *words[1:]]
    assert read_program(memory(jump), 0x1000).pieces == ()


@pytest.mark.parametrize(
    ("fields", "depends"),
    [
        ({}, False),
        ({"relative": 0, "immediate": 0x1020}, True),
        ({"register": 1}, True),
        ({"waddr_add": 0}, True),
        ({"waddr_mul": 32}, True),
        ({"raddr_a": 1}, True),  # it sets flags, N from bit 31 of the link address
        ({"immediate": (1 << 32) - 60}, True),
        ({"immediate": 8 * 1000}, True),
    ],
)
def test_only_some_programs_depend_on_their_address(fields: dict[str, int], depends: bool) -> None:
    branches = Branch(branch(0, condition=0)).replace(**fields).encode()
    words = [branches, *[NO] * 4, END, *[NO] * 1100, END, NO, NO]
    program = read_program(memory(words), 0x1000)
    assert program.has_branches
    assert program.fixed_address == (0x1000 if depends else 0)


def test_a_program_without_branches_can_lie_anywhere() -> None:
    assert read_program(memory([NO, END, NO, NO]), 0x1000).fixed_address == 0


def test_a_branch_between_instructions() -> None:
    program = read_program(memory([branch(-60, 0), NO, NO, NO, END, NO, NO]), 0x1000)
    assert [(p.code, p.address) for p in program.problems] == [("QPU-002", 0x1000)]
    assert len(program) == 7


def test_what_execution_reaches_is_added() -> None:
    words = [*[NO] * 4, END, NO, NO, NO, NO, END, NO, NO]
    read = memory(words)
    program = read_program(read, 0x1000)
    assert len(program) == 7
    more = reach(program, read, 0x1040)
    assert more is not None
    assert (len(more), more.pieces, more.learned) == (7 + 4, ((7, 0x1040),), {0x1040})
    assert reach(more, read, 0x1040) is None
    assert reach(more, read, 0x1044) is None
    again = reach(more, read, 0x1010)  # known, but not that execution goes there
    assert again is not None
    assert (again.words, again.targets) == (more.words, {2, 7})
    assert again.code == ((0x1000, read(0x1000, 56)), (0x1040, read(0x1040, 32)))


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=40))
def test_any_words_are_read(words: list[int]) -> None:
    program = read_program(memory(words), 0x1000, limit=64)
    assert len(program) <= 64
    assert isinstance(program.uniform_sites, tuple)
    assert isinstance(program.digest, str)


def test_uniform_stream() -> None:
    def write(address: int) -> int:
        return NOP.replace(waddr_add=address).encode()

    uniform = NOP.replace(raddr_a=32, raddr_b=32).encode()
    program = Program((uniform, write(Write.TMU0_T), write(Write.TMU1_S), write(Write.TMU0_S), uniform))
    sites = program.uniform_sites
    assert [(s.kind, s.unit, s.request, s.parameter) for s in sites] == [
        ("uniform", -1, -1, -1),
        ("texture", 0, 0, 0),
        ("texture", 0, 0, 1),
        ("uniform", -1, -1, -1),
    ]
    assert [s.index for s in sites] == [0, 1, 2, 3]
    direct, texture = program.texture_requests
    assert direct.is_direct
    assert direct.unit == 1
    assert texture.uniforms == (1, 2)
    assert texture.coordinates == "ts"
