"""Listings of lists: records that name programs, sub-lists, damage."""

import struct

from vc4lab.drm.recorded.listing import INDENT, JobListing
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build

CODE, LIST, SUBLIST = 0x1000, 0x2000, 0x3000


def listing(data: bytes) -> list[str]:
    memory = GuestMemory()
    program = assemble("mov tlbc, unif ; nop ; thrend\nnop\nnop\n")
    memory.write(CODE, program.bytes)
    memory.write(0x1800, struct.pack("<f", 2.5))
    memory.write(0x1900, struct.pack("<BBBBIII", 1, 12, 0, 0, CODE, 0x1800, 0x5000))
    memory.write(0x1A00, struct.pack("<BBBBII", 1, 0, 0, 0, CODE, 0x1800))
    memory.write(SUBLIST, build(24) + build(18))
    memory.write(LIST, data)
    return list(JobListing(memory).list_lines(LIST, LIST + len(data)))


def test_every_kind_of_shader_state() -> None:
    data = build(65, address=0x1900) + build(66, address=0x1A00)
    data += build(67, threading=1, code=CODE, uniforms=0x1800) + build(65, address=0x1900)
    text = "\n".join(listing(data))
    assert "NV shader record 0x00001900" in text
    assert "VG shader record 0x00001a00" in text
    assert text.count("fragment shader 0x00001000: 3 instructions") == 3
    assert text.count("mov tlbc, unif") == 1, "a program is written out once"
    assert text.count("(listed above)") == 2
    assert "uniform   0  0x40200000  2.5, read at 00001000" in text


def test_sublists_are_indented() -> None:
    lines = listing(build(1) + build(17, address=SUBLIST) + build(25))
    depths = [len(line) - len(line.lstrip()) for line in lines]
    assert depths == [len(INDENT) * n for n in (1, 1, 2, 2, 1)]


def test_damage_is_a_line() -> None:
    assert "!! reserved id" in listing(b"\xf0")[0]
    assert "!! Branch to sub-list: cut off" in listing(build(17, address=SUBLIST)[:-1])[0]
    nested = build(17, address=LIST)
    assert "nested too deeply" in listing(nested)[-1]
    assert "no program end" in "\n".join(listing(build(67, code=0x8000, uniforms=0)))
