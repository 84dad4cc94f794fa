"""CLIF: what is written draws the same when it is read; Mesa's ways of writing; mistakes by line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vc4lab.capture.errors import CaptureError
from vc4lab.jobs.dumps.clif_fields import RECORD_NAMES, fields_of, values_of, word_of
from vc4lab.jobs.dumps.clif_reader import read_clif
from vc4lab.jobs.dumps.clif_writer import clif_files
from vc4lab.jobs.dumps.list_text import list_lines
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.store import save_jobs
from vc4lab.jobs.unpack import unpack_jobs
from vc4lab.records.control import RECORDS, parse_list
from vc4lab.records.declarations import ClearColours, TileBinningMode
from vc4lab.records.states import ConfigurationBits, GlShaderState, ViewportOffset

TRIANGLE = Path(__file__).parents[1] / "data" / "captures" / "tri.vc4cap"


def picture(path: Path) -> np.ndarray:
    """What the last frame draws."""
    *_, (_, result) = JobsPlayer(open_jobs(path)).play()
    assert result.image is not None
    return np.asarray(result.image)


@pytest.fixture(scope="module")
def triangle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The triangle as CLIF."""
    ((name, data),) = clif_files(open_jobs(TRIANGLE))
    path = tmp_path_factory.mktemp("clif") / name
    path.write_bytes(data)
    return path


def test_what_is_written_draws_the_same(triangle: Path, tmp_path: Path) -> None:
    expected = picture(TRIANGLE)
    assert (picture(triangle) == expected).all()
    save_jobs(open_jobs(triangle), tmp_path / "packed.vc4cap")
    assert (picture(tmp_path / "packed.vc4cap") == expected).all()
    ((_, again),) = clif_files(open_jobs(triangle))
    assert again == triangle.read_bytes()


def test_a_file_of_an_earlier_version_is_read(triangle: Path) -> None:
    assert (picture(TRIANGLE.parent / "tri.clif") == picture(triangle)).all()


def test_its_text_can_be_edited(triangle: Path, tmp_path: Path) -> None:
    text = triangle.read_text()
    lines = text.split("\n")
    place = lines.index("CLEAR_COLORS") + 1
    assert "colour" in lines[place]
    lines[place] = f"{0xFF0000FF_FF0000FF}"
    edited = tmp_path / "edited.clif"
    edited.write_text("\n".join(lines))
    before, after = picture(triangle), picture(edited)
    assert tuple(after[0, 0]) == (255, 0, 0) != tuple(before[0, 0])
    unpack_jobs(open_jobs(edited), tmp_path / "folder")
    assert (picture(tmp_path / "folder") == after).all()


@pytest.mark.parametrize("number", sorted(RECORD_NAMES))
def test_every_record_reads_back(number: int) -> None:
    """All bits that CLIF has fields for, set and not set."""
    kind = RECORDS[number]

    def address_text(address: int) -> tuple[str, str]:
        return (f"[a+0x{address:08x}]", "x") if address else ("[null]", "")

    def resolve(text: str) -> int:
        return int(text.strip("[]").partition("+")[2] or "0", 16)

    known = sum(((1 << one.width) - 1) << one.low for one in fields_of(kind))
    for word in (0, known, known & 0x5555_5555_5555_5555_5555_5555_5555, known & 0x33CC << 16):
        values = [one.text for one in values_of(kind, word, address_text)]
        assert word_of(kind, values, resolve) == word, values
    if number not in (28, 96):
        assert known == sum(one.mask for one in kind.layout_fields.values()) | (0xC0 if number == 29 else 0)


def test_mesa_s_order_of_fields() -> None:
    """From the lowest bit up, whatever the order of declaration; the address of record 64 is first."""
    mode = TileBinningMode.make(tiles_x=13, tiles_y=10, memory_size=77)
    texts = [one.text for one in values_of(TileBinningMode, mode.value, lambda a: (f"0x{a:x}", ""))]
    assert texts == ["0x0", "77", "0x0", "13", "10", "0", "0", "0", "0", "0", "0"]
    names = [one.name for one in fields_of(ConfigurationBits)]
    assert names[0] == "enable_forward"
    assert names[-1] == "early_z_update"
    assert "coverage_update" not in names
    assert [one.name for one in fields_of(GlShaderState)] == ["address", "attributes", "extended"]
    assert [one.name for one in fields_of(ClearColours)] == ["colour", "z", "vg_mask", "stencil"]


TEXT = """
@createbuf_aligned 4096 list
@createbuf_aligned 4096 CL_0x1e000000

@buffer list
@format ctrllist  /* [list+0x00000000] */
VIEWPORT_OFFSET
  /*   Viewport Centre X-coordinate: */ 64
  /*   Viewport Centre Y-coordinate: */ 2.500000
BRANCH
  /*                        Address: */ [CL_0x1e000000+0x00000008] /* 0x1e000008 */
@format blank 6 /* [list+0x0a..0x0f] */
@format binary /* [list+0x10] */
0x11223344 0x55 0x66

@buffer CL_0x1e000000
@format shadrec_gl_attr /* 0 */
  [list+0x00000010] /* 0x1f000010 */ 15 16 0 0
@format ctrllist
HALT

@add_bin 0
  [list+0x00000000] /* 0x1f000000 */
  [CL_0x1e000000+0x00000009]
  [null]
  0
  [null]
@wait_bin_all_cores
"""


def test_mesa_s_way_of_writing() -> None:
    """Comments say where a buffer lies, or its name does; arguments stand in lines of their own."""
    dump = read_clif(TEXT.encode(), "x.clif")
    places = {one.name: one.address for one in dump.buffers}
    assert places == {"list": 0x1F000000, "CL_0x1e000000": 0x1E000000}
    assert dump.lists == [(0, 0x1F000000, 0x1E000009)]
    first, branch, last = parse_list(dump.read, 0x1F000000, 0x1E000009, follow=True)
    assert first.payload == ViewportOffset.make(x=64, y=40)
    assert branch.payload is not None
    assert branch.payload.address == last.address == 0x1E000008
    assert dump.read(0x1F000010, 100) == bytes.fromhex("443322115566")
    assert dump.read(0x1E000000, 8) == bytes.fromhex("1000001f0f100000")


def test_buffers_without_a_place_lie_above_the_others() -> None:
    dump = read_clif(TEXT.replace(" /* 0x1f000010 */", "").replace(" /* 0x1f000000 */", "").encode(), "x")
    (address,) = (one.address for one in dump.buffers if one.name == "list")
    assert address == 0x1E001000
    assert dump.lists[0].start == address


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("@buffer list", "@buffering list", 5, "there is no @buffering"),
        ("@format ctrllist  /", "@format list  /", 6, "no format 'list'"),
        ("BRANCH\n", "BRANCHES\n", 10, "no record BRANCHES"),
        ("*/ 64", "*/ 64 64", 7, "VIEWPORT_OFFSET: 3 values"),
        ("*/ 64", "*/ 99999", 7, "x: 99999 needs more than 16 bits"),
        ("*/ 64", "*/ wide", 7, "VIEWPORT_OFFSET: 0 values"),
        ("*/ 64", "*/ 0xzz", 7, "x: invalid literal"),
        ("[CL_0x1e000000+0x00000008]", "[CL+0x00000008]", 10, "no buffer [CL+"),
        ("blank 6", "blank -6", 12, "takes how many bytes"),
        ("blank 6", "blank 999999999999", 12, "more than 256 MiB"),
        ("0x55 ", "0xyz ", 14, "'0xyz' is neither a word"),
        ("0x55 ", "0x555555555 ", 14, "neither a word"),
        ("15 16 0 0", "15 16 0", 17, "shadrec_gl_attr: 4 values"),
        ("HALT", "7", 20, "7 belongs to no record"),
        ("@buffer list\n", "", 5, "there is no @buffer"),
        ("  [null]\n  0\n", "", 22, "@add_bin takes a core"),
        ("[CL_0x1e000000+0x00000009]", "nowhere", 22, "@add_bin: invalid literal"),
        ("[CL_0x1e000000+0x00000009]", "0x100000000", 22, "an address has 32 bits"),
        ("@wait_bin", "x" * 70000 + "\n@wait", 28, "a line of 70000 bytes"),
    ],
)
def test_what_is_wrong_is_named_by_line(old: str, new: str, line: int, said: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(CaptureError) as caught:
        read_clif(TEXT.replace(old, new).encode(), "x.clif").capture()
    assert caught.value.code == "CAP-012"
    assert (caught.value.file, caught.value.line) == ("x.clif", line)
    assert said in caught.value.text


def test_a_buffer_beyond_memory() -> None:
    with pytest.raises(CaptureError, match="leaves memory"):
        read_clif(TEXT.replace("CL_0x1e000000", "CL_0x3fffffff").encode(), "x.clif").capture()


DEBUG_CL = """MESA: info: BCL:
0x00000000 0x00000000: 0xfe GEM Relocations
    buffer 0: 3
    buffer 1: 0
0x00000009 0x00000000: 0x65 Depth Offset
    Depth Offset Factor: 1.500000
    Depth Offset Units: 0.000000
0x0000000e 0x00000005: 0x67 Viewport Offset
    Viewport Centre X-coordinate: 400.000000
    Viewport Centre Y-coordinate: 300.000000
0x00000013 0x0000000a: 0x40 GL Shader State
    Address: 2
    Number of attribute arrays: 2
    Extended shader record: 0 /* false */
0x00000018 0x0000000f: 0x04 Flush
"""


def test_what_mesa_printed() -> None:
    """kmscube with Debian's Mesa 22.3.6: both lists, to their ends."""
    data = (TRIANGLE.parent / "kmscube-cl.txt").read_bytes()
    lines = list(list_lines(data, "x"))
    assert lines.count("list") == 2
    assert not any("!!" in one for one in lines)
    said = "\n".join(lines)
    for text in (
        "address=0x00000000 memory_size=0 state_address=0x00000000 tiles_x=20 tiles_y=12",
        "left=0 bottom=0 width=1280 height=720",
        "enable_forward clockwise oversample=none coverage_update=nonzero depth_test=always early_z_update",
        "x=640px y=360px",
        "GL shader state  attributes=3 address=0x00000000",
        "Vertex array primitives  mode=triangle_strip length=4 first=0",
    ):
        assert text in said, text


def test_lists_of_vc4_debug_are_shown_and_not_drawn(tmp_path: Path) -> None:
    lines = list(list_lines(DEBUG_CL.encode(), "x"))
    assert lines[0] == "list"
    assert "factor=1.5 units=0" in lines[2]
    assert "x=400px y=300px" in lines[3]
    assert "attributes=2" in lines[4]
    assert "no memory" in lines[-1]
    path = tmp_path / "cl.txt"
    path.write_text(DEBUG_CL)
    with pytest.raises(CaptureError) as caught:
        open_jobs(path)
    assert caught.value.code == "CAP-013"
    with pytest.raises(CaptureError, match=r"x:5: Depth offset: units: could not convert"):
        list(list_lines(DEBUG_CL.replace("0.000000", "0.0.0").encode(), "x"))
