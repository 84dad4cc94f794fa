"""Control lists: declared sizes are those of the reference, lists of real drivers parse exactly."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.memory import GuestMemory
from vc4lab.records import codes, declarations
from vc4lab.records.control import (
    RECORD_SIZES,
    RECORDS,
    build,
    bytes_reader,
    format_list,
    parse_list,
    record_type,
)

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"

#: Total bytes of every record, AG100-R table 38 and the driver headers (independent of the source).
REFERENCE_SIZES = {
    **dict.fromkeys([0, 1, 2, 3, 4, 5, 6, 7, 8, 18, 19, 24, 25, 48], 1),
    **dict.fromkeys([20, 42, 56], 2),
    **dict.fromkeys([100, 115], 3),
    96: 4,
    **dict.fromkeys([16, 17, 26, 27, 49, 64, 65, 66, 97, 98, 99, 101, 103], 5),
    **dict.fromkeys([28, 29], 7),
    **dict.fromkeys([67, 102, 104, 105, 106], 9),
    **dict.fromkeys([33, 41], 10),
    113: 11,
    **dict.fromkeys([32, 114], 14),
    112: 16,
}

#: Clears a 64x64 RGBA frame to red: a list as bare-metal programs write it.
CLEAR_LIST = bytes.fromhex(
    "72ff0000ffff0000ff0000000000 71001000c0400040000400 730000 1c000000000000 730000 19"
)


def test_sizes() -> None:
    assert {n: s for n, s in enumerate(RECORD_SIZES) if s} == REFERENCE_SIZES
    assert set(RECORDS) == {*REFERENCE_SIZES, 254}


@pytest.mark.parametrize("kind", RECORDS.values(), ids=lambda kind: kind.__name__)
def test_declarations(kind: type[declarations.Payload]) -> None:
    assert kind.__doc__
    assert set(kind.legal) <= set("BRT")
    covered = 0
    for bits in kind.layout_fields.values():
        assert not covered & bits.mask, "fields overlap"
        covered |= bits.mask
    assert record_type(kind.title) is record_type(kind.__name__.lower()) is kind


@given(st.data())
def test_build_and_parse(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([k for k in RECORDS.values() if not k.variable]))
    payload = data.draw(st.binary(min_size=kind.size - 1, max_size=kind.size - 1))
    raw = bytes([kind.id]) + payload
    (record,) = parse_list(bytes_reader(raw, 0x100), 0x100, 0x100 + len(raw))
    assert (record.id, record.size, record.address) == (kind.id, len(raw), 0x100)
    floats = {n for n, v in record.fields.items() if v != v}
    if not floats:
        rebuilt = build(kind, **record.fields)
        used = sum(bits.mask for bits in kind.layout_fields.values())
        assert int.from_bytes(rebuilt[1:], "little") == int.from_bytes(payload, "little") & used
    assert record.name in format_list(bytes_reader(raw), 0)


def test_clear_list() -> None:
    records = list(parse_list(bytes_reader(CLEAR_LIST, 0x1000), 0x1000, 0x1000 + len(CLEAR_LIST)))
    assert [r.id for r in records] == [114, 113, 115, 28, 115, 25]
    assert records[1].address == 0x1000 + 14
    mode = records[1].payload
    assert isinstance(mode, declarations.TileRenderingMode)
    assert (mode.address, mode.width, mode.height) == (0xC0001000, 64, 64)
    assert mode.format is codes.FrameFormat.RGBA8888
    assert records[0].colour == 0xFF0000FF
    built = b"".join(build(r.id, **r.fields) for r in records)
    assert built == CLEAR_LIST


def test_addresses_and_floats() -> None:
    assert build("store tile buffer general", buffer=1, address=0x1230, last_tile=1) == bytes.fromhex(
        "1c 0100 38120000"
    )
    assert build("GL shader state", attributes=3, address=0xABCD0) == bytes.fromhex("40d3bc0a00")
    assert build("depth offset", factor=1.0, units=-2.0) == bytes.fromhex("65803f00c0")
    assert build("point size", point_size=0.5) == bytes.fromhex("620000003f")
    with pytest.raises(ValueError, match="not a multiple of 16"):
        build(28, address=8)
    with pytest.raises(KeyError, match="no control-list record"):
        build("tile colour")
    with pytest.raises(KeyError, match="id 9"):
        build(9)


@pytest.mark.parametrize("path", sorted(JOBS.glob("*/job*/bin_cl.bin")), ids=lambda p: str(p.parent))
def test_driver_lists_parse_to_their_end(path: Path) -> None:
    data = path.read_bytes()
    records = list(parse_list(bytes_reader(data), 0, len(data)))
    assert not any(record.illegal for record in records)
    assert sum(record.size for record in records) == len(data)
    assert records[0].id == 112
    assert [record.id for record in records[-2:]] == [7, 4]
    assert b"".join(build(record.id, **record.fields) for record in records) == data


def test_branches_and_sublists() -> None:
    memory = GuestMemory()
    memory.write(0x100, build(17, address=0x200) + build(16, address=0x300))
    memory.write(0x200, build(1) + build(17, address=0x240) + build(18))
    memory.write(0x240, build(115, column=1, row=2) + build(18))
    memory.write(0x300, build(0))
    ids = [r.id for r in parse_list(memory.read, 0x100, follow=True)]
    assert ids == [17, 1, 17, 115, 18, 18, 16, 0]
    assert [r.id for r in parse_list(memory.read, 0x100)] == [17, 16]
    assert "Tile coordinates  column=1 row=2" in format_list(memory, 0x100)


def test_endless_lists_end() -> None:
    memory = GuestMemory()
    memory.write(0x100, build(16, address=0x100))
    *_, last = parse_list(memory.read, 0x100, follow=True, limit=1000)
    assert last.illegal
    memory.write(0x100, build(17, address=0x100))
    *_, last = parse_list(memory.read, 0x100, follow=True)
    assert last.problem == "sub-lists nested too deeply"
    assert len(format_list(memory, 0x100).splitlines()) == 4


def test_cut_off_and_reserved() -> None:
    (record,) = parse_list(bytes_reader(CLEAR_LIST), 0, 5)
    assert record.problem == "Clear colours: cut off by the end"
    (record,) = parse_list(bytes_reader(b"\x70\x00"), 0)
    assert record.illegal
    (record,) = parse_list(bytes_reader(b"\x09"), 0)
    assert record.problem == "reserved id 0x09"
    assert "!! reserved" in format_list(bytes_reader(b"\x09"), 0)
    with pytest.raises(AttributeError, match="no field 'row'"):
        _ = record.row


@given(st.binary(max_size=400), st.integers(0, 0xFFFFFFFF), st.booleans())
def test_hostile_bytes(data: bytes, address: int, follow: bool) -> None:
    for base in (0, address):
        text = format_list(bytes_reader(data, base), address, follow=follow, limit=64)
        assert isinstance(text, str)
    _MEMORY.write(address, data)
    list(parse_list(_MEMORY.read, address, address + len(data), follow=follow, limit=64))


_MEMORY = GuestMemory()
