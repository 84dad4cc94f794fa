"""Addresses in lists: outside RAM, misaligned, through two aliases; and who reads what."""

import struct

import pytest
from tests.support.frames import RED, Frame, solid
from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, nv_vertex, viewport

from vc4lab.diagnostics import Reporter
from vc4lab.memory import GuestMemory
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.checks.addresses import AddressCheck
from vc4lab.v3d.core import V3D
from vc4lab.v3d.events import Use

TRIANGLE = b"".join(nv_vertex(x, y, 0.5, 1.0) for x, y in ((5, 5), (5, 60), (60, 5)))
ARRAY = build(33, mode=4, length=3, first=0)
RAM = 32 << 20


@pytest.fixture
def check() -> AddressCheck:
    return AddressCheck(Reporter(), RAM)


@pytest.mark.parametrize("alias", [0, 0x40000000, 0x80000000, 0xC0000000])
def test_ram_under_every_alias_is_fine(check: AddressCheck, alias: int) -> None:
    for use in Use:
        check.uses(use, alias | 0x10_0000, 4096)
    assert not check.reporter.items


@pytest.mark.parametrize(
    ("use", "address", "size", "code", "words"),
    [
        (Use.LIST, 0xC0000000 | RAM, 4, "CLE-003", "the RAM ends at 0xc1ffffff"),
        (Use.LIST, 0x7EC00000, 4, "CLE-003", "device registers"),
        (Use.CODE, 0xC0000000, 8, "MEM-001", "never filled in"),
        (Use.UNIFORMS, 0x3F000000, 8, "MEM-001", "a uniform stream at 0x3f000000"),
        (Use.TEXTURE, 0xC0000000 | RAM - 4096, 8192, "MEM-001", "extends past"),
        (Use.CODE, 0xC0100004, 8, "MEM-002", "multiple of 8"),
    ],
)
def test_what_is_wrong(check: AddressCheck, use: Use, address: int, size: int, code: str, words: str) -> None:
    for _ in range(3):
        check.uses(use, address, size, 0x1234)
    (item,) = check.reporter.items
    assert item.code == code
    assert item.address == 0x1234
    assert words in item.message
    assert check.reporter.counts[code] == 1, "each range is looked at once"


def test_another_program_has_other_things_at_an_address(check: AddressCheck) -> None:
    for _ in range(2):
        check.uses(Use.LIST, 0xC0100000)
        check.uses(Use.CODE, 0xC0200004, 8)
        assert check.reporter.counts == {"MEM-002": 1}
    check.forget()
    check.uses(Use.LIST, 0x40100000)
    assert check.reporter.counts == {"MEM-002": 1}, "the other alias is no mistake of this one"
    check.uses(Use.CODE, 0xC0200004, 8)
    assert check.reporter.counts == {"MEM-002": 2}
    check.uses(Use.UNIFORMS, 0xC0100000)
    assert check.reporter.counts["CLE-023"] == 1


def test_a_v3d_that_forgets_programs_forgets_their_addresses() -> None:
    """Else the alias of a dead program's list is a mistake of the next program."""
    frame = Frame()
    uses = frame.v3d.lint.addresses.uses
    uses(Use.LIST, 0xC0100000)
    frame.v3d.forget_programs()
    uses(Use.LIST, 0x40100000)
    assert "CLE-023" not in frame.reporter.counts
    uses(Use.LIST, 0xC0100000)
    assert frame.reporter.counts["CLE-023"] == 1


def test_each_use_address_and_size_is_looked_at(check: AddressCheck) -> None:
    """Ranges that differ in one of the three by very much or very little."""
    beyond = [0xC0000000 | RAM, (0xC0000000 | RAM) + 8, 0xFFFFFFF8]
    for use in (Use.CODE, Use.TEXTURE, Use.ATTRIBUTES):
        for address in beyond:
            for size in (1, 2, 256, 1 << 30):
                check.uses(use, address, size)
    assert check.reporter.counts["MEM-001"] == 36
    for use in (Use.CODE, Use.TEXTURE, Use.ATTRIBUTES):
        for address in beyond:
            check.uses(use, address, 256)
    assert check.reporter.counts["MEM-001"] == 36


def test_two_aliases_of_one_line(check: AddressCheck) -> None:
    check.uses(Use.LIST, 0x4010_0000, 64)
    check.uses(Use.LIST, 0x0010_0020, 64)
    check.uses(Use.LIST, 0xC010_0400, 64)
    assert not check.reporter.items, "both go through the L2"
    check.uses(Use.UNIFORMS, 0xC010_0010, 16)
    (item,) = check.reporter.items
    assert item.code == "CLE-023"
    assert "0x00100000" in item.message


def test_a_job_names_everything_it_reads() -> None:
    frame = Frame()
    seen: list[tuple[Use, int, int]] = []
    frame.v3d.listeners.memory_used.subscribe(lambda event: seen.append(event[:3]))
    program = "ldi r0, -1\nmov r1, unif\nsbwait\nmov tlbc, r0 ; nop ; thrend\nnop\nnop ; nop ; sbdone\n"
    uniforms = frame.job.put(bytes(4))
    code = frame.job.program(program)
    vertices = frame.job.put(TRIANGLE)
    record = frame.job.put(struct.pack("<BBBBIII", 1, 12, 1, 0, code, uniforms, vertices))
    frame.bin(viewport(frame.job) + build(65, address=record) + ARRAY)
    assert not frame.reporter.items, frame.reporter.summary()
    assert {use for use, _, _ in seen} == {
        Use.LIST, Use.TILE_MEMORY, Use.TILE_STATE, Use.SURFACE, Use.SHADER_RECORD, Use.CODE,
        Use.UNIFORMS, Use.ATTRIBUTES, Use.TILE_LIST,
    }  # fmt: skip
    assert (Use.CODE, code, len(assemble(program).bytes)) in seen
    assert (Use.UNIFORMS, uniforms, 4) in seen
    assert (Use.SHADER_RECORD, record, 16) in seen
    assert seen.count((Use.ATTRIBUTES, vertices, 36)) == 2, "binning and rendering read them"


@pytest.mark.parametrize(
    ("binner", "renderer", "first", "codes"),
    [
        (0, 3, 0, {"CLE-023"}),
        (0, 3, 3, {"CLE-023"}),
        (3, 1, 2, {"CLE-023"}),
        (3, 3, 0, set()),
        (0, 1, 0, set()),
    ],
)
def test_tile_lists_are_read_by_the_alias_they_are_written_by(
    binner: int, renderer: int, first: int, codes: set[str]
) -> None:
    """Record 112 names tile memory by one alias, the rendering list's branches by another."""
    frame = Frame(128, 128)
    job = frame.job
    start, end, lists = job.binning(b"")
    mode = job.memory.read(start + 1, 4)
    assert int.from_bytes(mode, "little") == lists
    job.memory.write(start + 1, (binner << 30 | lists).to_bytes(4, "little"))
    data = build(113, address=frame.surface, width=128, height=128, format=1)
    for tile in (first, *[n for n in range(4) if n != first]):
        data += build(115, column=tile & 1, row=tile >> 1)
        data += build(17, address=renderer << 30 | lists + 32 * tile) + build(24)
    rendering = job.put(data)
    for _ in range(3):
        job.run(frame.v3d, (start, end), (rendering, rendering + len(data)))
    found = [item for item in frame.reporter.items if item.code != "CLE-020"]
    assert {item.code for item in found} == codes
    if codes:
        (item,) = found
        assert item.message.startswith("a tile's list is given as 0x")
        assert frame.reporter.counts["CLE-023"] == 1


def test_addresses_of_the_arm_are_said_once_where_bus_addresses_are_direct() -> None:
    reporter = Reporter()
    check = AddressCheck(reporter, RAM)
    check.uses(Use.LIST, 0x0010_0000)
    assert not reporter.items, "a Pi 1 or Zero, or no board at all"
    check.has_direct_bus = True
    check.uses(Use.CODE, 0xC020_0000, 8)
    check.uses(Use.SURFACE, 0)
    assert not reporter.items, "depth alone is drawn without a frame buffer"
    check.uses(Use.UNIFORMS, 0x0030_0000, 4, 0x1234)
    check.uses(Use.TEXTURE, 0x4040_0000, 4)
    (item,) = reporter.items
    assert (item.code, item.address) == ("CLE-041", 0x1234)
    assert "ARM address 0x00300000; the bus address is 0xc0300000" in item.message


def test_registers_with_wrong_addresses() -> None:
    reporter = Reporter()
    v3d = V3D(GuestMemory(RAM), reporter)
    for start, end in ((CT0CA, CT0EA), (CT1CA, CT1EA)):
        v3d.write(start, 0xC0000000 | 2 * RAM)
        v3d.write(end, (0xC0000000 | 2 * RAM) + 1)
    assert {item.code for item in reporter.items} == {"CLE-003"}
    v3d.write(0x308, 0x7E200000)
    v3d.write(0x30C, 4096)
    assert "overspill" in reporter.items[-1].message


def test_shader_record_outside_ram() -> None:
    frame = Frame(memory=GuestMemory(RAM))
    frame.bin(viewport(frame.job) + build(65, address=0xFFFF0000) + ARRAY)
    assert "CLE-003" in {item.code for item in frame.reporter.items}


def test_a_texture_outside_ram() -> None:
    frame = Frame(memory=GuestMemory(RAM))
    program = "mov t0t, 0\nmov t0s, 0\nsbwait\nnop ; nop ; ldtmu0\nmov tlbc, r4 ; nop ; thrend\n"
    program += "nop\nnop ; nop ; sbdone\n"
    uniforms = frame.job.put(struct.pack("<II", 0xC0000000 | 2 * RAM, 64 << 20 | 64 << 8))
    record = frame.nv_shader(program, TRIANGLE)
    where = struct.unpack("<I", record[1:5])[0]
    frame.job.memory.set_u32(where + 8, uniforms)
    frame.bin(viewport(frame.job) + record + ARRAY)
    (item,) = [item for item in frame.reporter.items if item.code == "MEM-001"]
    assert "a texture" in item.message
    assert item.address == uniforms


def test_a_texture_address_that_is_not_aligned() -> None:
    frame = Frame()
    program = "mov t0t, 0\nmov t0s, 0\nsbwait\nnop ; nop ; ldtmu0\nmov tlbc, r4 ; nop ; thrend\n"
    program += "nop\nnop ; nop ; sbdone\n"
    uniforms = frame.job.put(struct.pack("<II", 0xC0200400, 64 << 20 | 64 << 8))
    record = frame.nv_shader(program, TRIANGLE)
    frame.job.memory.set_u32(struct.unpack("<I", record[1:5])[0] + 8, uniforms)
    frame.bin(viewport(frame.job) + record + ARRAY)
    (item,) = [item for item in frame.reporter.items if item.code == "MEM-002"]
    assert "multiple of 4096" in item.message
    assert item.address == uniforms


def test_solid_is_still_solid() -> None:
    frame = Frame(memory=GuestMemory(RAM))
    pixels = frame.bin(viewport(frame.job) + frame.nv_shader(solid(RED), TRIANGLE) + ARRAY)
    assert pixels[8, 8] == RED


def test_user_programs_name_their_code_and_uniforms() -> None:
    reporter = Reporter()
    v3d = V3D(GuestMemory(RAM), reporter)
    seen: list[tuple[Use, int, int]] = []
    v3d.listeners.memory_used.subscribe(lambda event: seen.append(event[:3]))
    code = assemble("mov -, unif\nmov -, unif\nnop ; nop ; thrend\nnop\nnop\n").bytes
    v3d.memory.write(0x1000, code)
    v3d.write(0x434, 0xC0002000)
    v3d.write(0x430, 0xC0001000)
    v3d.read(0x43C)
    assert seen == [(Use.CODE, 0xC0001000, len(code)), (Use.UNIFORMS, 0xC0002000, 8)]
    v3d.write(0x430, 0x7E00_0000)
    assert reporter.has("MEM-001")
