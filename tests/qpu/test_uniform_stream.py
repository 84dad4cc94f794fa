"""Where texture parameters lie: the uniform pointer followed through a program's text."""

import pytest

from vc4lab.qpu.program.program import Program
from vc4lab.qpu.program.uniform_stream import MAX_INSTRUCTIONS, StreamLayout, stream_layout
from vc4lab.qpu.text.assembler import assemble

START = 0x1000
END = "nop ; nop ; ldtmu0\nnop ; nop ; thrend\nnop\nnop\n"
SAMPLE = "mov t0t, r0\nmov t0s, r0\n"


def layout(text: str, words: dict[int, int] | None = None, **settings: bool) -> StreamLayout:
    """Of a program at 0x8000, with these words at byte offsets of the stream."""
    memory = {START + at: word for at, word in (words or {}).items()}
    program = Program(tuple(assemble(text, address=0x8000).words), 0x8000, **settings)
    return stream_layout(program, lambda address: memory.get(address, 0xDEAD0000), START)


def places(text: str, words: dict[int, int] | None = None, **settings: bool) -> list[int | None]:
    """Places of the texture parameters."""
    program = Program(tuple(assemble(text).words))
    found = layout(text, words, **settings).places
    return [found[site.index] for site in program.uniform_sites if site.kind == "texture"]


def test_without_a_move_they_are_in_the_order_of_the_text() -> None:
    text = "mov r1, unif\n" + SAMPLE + "mov r1, unif\n" + SAMPLE + END
    assert layout(text) == StreamLayout((0, 4, 8, 12, 16, 20))


def test_a_uniform_says_where() -> None:
    text = "mov r1, unif\nnop\nmov unif_addr, r1\n" + SAMPLE + "mov r1, unif\n" + SAMPLE + END
    found = layout(text, {0: START + 0x200})
    assert found == StreamLayout((0, 0x200, 0x204, 12, 0x20C, 0x210), ((0, 0x200),))
    # Two pointers, one where the other leads; a sum with a number before it is written.
    text = "mov unif_addr, unif\nnop\nldi r1, 16\nadd unif_addr, r1, unif\n" + SAMPLE + END
    found = layout(text, {0: START + 0x200, 0x200: START + 0x300})
    assert found.places[2:] == (0x310, 0x314)
    assert found.pointers == ((0, 0x200), (0x200, 0x300))


@pytest.mark.parametrize(
    "move",
    [
        "ldi r1, 0x1200\nmov unif_addr, r1\n",
        "ldi ra1, 0x1200\nnop\nmov unif_addr, ra1\n",
        "ldi r1, 0x11f8\nadd r1, r1, 8\nmov unif_addr, r1\n",
        "ldi r1, 0x1208\nsub r1, r1, 8\nnop ; v8min r2, r1, r1\nmov unif_addr, r2\n",
        "ldi unif_addr, 0x1200\n",
    ],
)
def test_a_number_says_where(move: str) -> None:
    found = layout(move + SAMPLE + END)
    assert found.places == (0x200, 0x204)
    assert found.absolute


@pytest.mark.parametrize(
    "move",
    [
        "mov unif_addr, r0\n",  # nothing is known of it
        "itof r1, elem_num\nmov unif_addr, r1\n",
        "ldi ra1, 0x1200\nmov unif_addr, ra1\n",  # may read as it was
        "ldi r1, 0x1200\nmov.zs unif_addr, r1\n",
        "ldi r1, 0x1200\nmov.zs r1, 0\nmov unif_addr, r1\n",  # one of two
        "ldi r1, 0x1200\nnop ; mov r2.8a, r1\nmov unif_addr, r2\n",
        "ldi ra1, 0x1200\nnop\nmov r1, ra1.16a\nmov unif_addr, r1\n",
        "ldi r5rep, 0x1200\nmov unif_addr, r5\n",
        "ldi r1, 0x1200\nshl r1, r1, 0\nmov unif_addr, r1\n",
    ],
)
def test_what_is_not_known(move: str) -> None:
    assert places(move + SAMPLE + END) == [None, None]


def test_the_b_space_is_relative_if_so_chosen() -> None:
    text = "ldi r1, 0x1200\nnop ; mov unif_addr_rel, r1\n" + SAMPLE + END
    assert places(text) == [0x200, 0x204]
    assert places(text, relative_b=True) == [None, None]


def test_a_program_that_resets_the_pointer_where_ways_meet() -> None:
    """As Mesa's driver does: each way brings a word with the address of the stream."""
    text = (
        "mov r3, 4\nagain: ldi r1, 4\nadd unif_addr, r1, unif\n" + SAMPLE + "sub.setf r3, r3, 1\n"
        "brr.anynz -, again\nnop\nnop\nnop\n" + END
    )
    words = {0: START, 12: START}
    assert places(text, words) == [4, 8]
    assert layout(text, words).pointers == ((0, 0), (12, 0))
    # One of the ways leads elsewhere.
    assert places(text, {0: START, 12: START + 4}) == [None, None]


def test_ways_that_differ() -> None:
    skip = "brr.allz -, there\nnop\nnop\nnop\nmov r1, unif\nthere: "
    assert places(skip + SAMPLE + END) == [None, None]
    assert places(skip + "ldi unif_addr, 0x1200\n" + SAMPLE + END) == [0x200, 0x204]
    assert places(SAMPLE + skip + END) == [0, 4]
    loop = "again: " + SAMPLE + "brr.anynz -, again\nnop\nnop\nnop\n" + END
    assert places(loop) == [None, None]
    # What follows an unconditional branch is reached from elsewhere only.
    text = "brr -, there\nnop\nnop\nnop\nmov r1, unif\nthere: " + SAMPLE + END
    assert places(text) == [0, 4]


def test_ways_that_are_not_known() -> None:
    assert places("bra -, ra1\nnop\nnop\nnop\n" + SAMPLE + END) == [None, None]
    two = "brr.allz -, there\nbrr.anyz -, there\nnop\nnop\nnop\nthere: "
    assert places(two + SAMPLE + END) == [None, None]


def test_a_long_program_is_given_up_quickly() -> None:
    text = "ldi unif_addr, 0x1200\n" + "nop\n" * MAX_INSTRUCTIONS + SAMPLE + END
    assert places(text) == [None, None]
    # Ways that meet again and again, with a pointer that has ever more places.
    knot = "".join(f"t{k}: mov r1, unif\nbrr.allz -, t{k // 2}\nnop\nnop\nnop\n" for k in range(150))
    assert places(knot + SAMPLE + END) == [None, None]
