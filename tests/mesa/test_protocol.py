"""Declarations: what is decoded is what was encoded, wrong values are named, pages are current."""

import dataclasses
import random
import re
import struct
from pathlib import Path

import pytest

from vc4lab.cli.virgl_page import write_page
from vc4lab.mesa.protocol import capabilities, objects, state_commands, work_commands
from vc4lab.mesa.protocol.codes import BlendFactor, Compare, Face, ObjectKind, Primitive, Stage
from vc4lab.mesa.protocol.command import BindObject, Command, CreateObject
from vc4lab.mesa.protocol.commands import COMMANDS
from vc4lab.mesa.protocol.fields import Malformed, bits, flag, word
from vc4lab.mesa.protocol.formats import Format, layout_of
from vc4lab.mesa.protocol.messages import MESSAGES
from vc4lab.mesa.protocol.objects import OBJECTS
from vc4lab.mesa.protocol.payload import Payload
from vc4lab.mesa.protocol.stream import Wrong, decode_stream

ROOT = Path(__file__).parents[2]
DECLARED = [*MESSAGES.values(), *COMMANDS.values(), *OBJECTS.values()]


class Example(Payload):
    """Fields of several kinds."""

    handle: int = word(0)
    func: Compare = bits(1, 3, 1, enum=Compare)
    enabled: bool = flag(1, 0)
    slot: int = word(2, below=16)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def valid(declared: type[Payload], rng: random.Random) -> bytes:
    """Words that a declaration allows."""
    data = bytearray(rng.randbytes(4 * (declared.fixed + 6 * 4)))
    for spec in declared.specs.values():
        if spec.count == -1 or spec.form == "h":
            continue
        at = 4 * (spec.at - declared.first)
        old = int.from_bytes(data[at : at + 4], "little")
        mask = (1 << (spec.hi - spec.lo + 1)) - 1
        value = old >> spec.lo & mask
        if spec.enum is not None:
            value = int(rng.choice([one for one in spec.enum if int(one) <= mask]))
        if spec.below is not None:
            value %= spec.below
        if spec.form == "n" and not isinstance(spec.item, str):
            step = 4 * spec.item_words
            for number in range(spec.count):
                one = valid(spec.item, rng)[:step]
                data[at + number * step : at + (number + 1) * step] = one
            continue
        if spec.form in "fd" or (spec.form == "n" and spec.item == "f"):
            floats = [rng.choice((0.0, 1.0, -2.5, 1e30)) for _ in range(spec.words)]
            if spec.form == "d":
                data[at : at + 8] = struct.pack("<d", floats[0])
            else:
                data[at : at + 4 * spec.words] = struct.pack(f"<{spec.words}f", *floats)
            continue
        new = old & ~(mask << spec.lo) | value << spec.lo
        data[at : at + 4] = new.to_bytes(4, "little")
    tail = declared._tail
    if tail is None:
        return bytes(data[: 4 * declared.fixed])
    item = tail[1].item
    if isinstance(item, str):
        return bytes(data[: 4 * (declared.fixed + 3)])
    return bytes(data[: 4 * declared.fixed]) + b"".join(valid(item, rng) for _ in range(2))


@pytest.mark.parametrize("declared", DECLARED, ids=lambda one: one.__name__)
def test_what_is_decoded_is_what_was_encoded(declared: type[Payload]) -> None:
    """For each declaration; a second decoding gives an equal object, which prints the same."""
    rng = random.Random(declared.__name__)
    for _ in range(20):
        if declared is CreateObject:
            state = objects.Surface.decode(valid(objects.Surface, rng))
            made: Payload = CreateObject(7, state)
            again: Payload = CreateObject.decode_command(8, made.encode(), 0, len(made.encode()) // 4)
        else:
            made = declared.decode(valid(declared, rng))
            again = declared.decode(made.encode())
        assert made == again
        assert hash(made) == hash(again)
        assert made.encode() == again.encode()
        assert repr(made) == repr(again)
        assert made.text() == again.text()


def test_a_declaration_says_what_it_has() -> None:
    made = Example.decode(words(5, 0b0111, 3))
    assert made == Example(5, Compare.LEQUAL, True, 3)
    assert made.text() == "handle=5 func=lequal enabled slot=3"
    assert repr(made) == "Example(handle=5, func=lequal, enabled, slot=3)"
    assert made.encode() == words(5, 0b0111, 3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.handle = 1  # type: ignore[misc]


def test_limits_name_the_field() -> None:
    with pytest.raises(Malformed, match="slot is 16, but must be below 16"):
        Example.decode(words(5, 0, 16))
    with pytest.raises(Malformed, match="it has 2 words, not 3"):
        Example.decode(words(5, 0))
    with pytest.raises(Malformed, match="mode is 99, which is no Primitive"):
        work_commands.DrawVbo.decode(words(0, 3, 99, *[0] * 9))
    with pytest.raises(Malformed, match="it has 13 words, not 12 or 14 or 20"):
        work_commands.DrawVbo.decode(bytes(4 * 13))
    with pytest.raises(Malformed, match="viewports: 5 words are no multiple of 6"):
        state_commands.SetViewportState.decode(bytes(4 * 6))
    with pytest.raises(Malformed, match="33 of them, but there must be fewer than 33"):
        state_commands.SetVertexBuffers.decode(bytes(4 * 3 * 33))
    with pytest.raises(ValueError, match="doesn't fit in 3 bits"):
        Example(func=9).encode()  # type: ignore[arg-type]


def test_state_objects_are_gallium_s() -> None:
    """A rasterizer and a blend state as glmark2 makes them, from their words."""
    made = OBJECTS[ObjectKind.RASTERIZER].decode(
        words(1 << 1 | 2 << 8 | 1 << 15 | 1 << 29 | 1 << 30, 0x3F800000, 0, 0, 0x3F800000, 0, 0, 0)
    )
    assert isinstance(made, objects.RasterizerState)
    assert made.cull_face is Face.BACK
    assert made.front_ccw
    assert made.point_size == 1.0
    assert "depth_clip, sprite_coord_mode=0, cull_face=back" in repr(made)
    assert made == dataclasses.replace(made)
    target = 1 | 3 << 4 | 19 << 9 | 1 << 17 | 17 << 22 | 15 << 27
    blend = objects.BlendState.decode(words(4, 0, *[target] * 8))
    assert blend.dither
    assert blend.rt[0].rgb_dst_factor is BlendFactor.INV_SRC_ALPHA
    assert blend.rt[0].alpha_dst_factor is BlendFactor.ZERO
    assert blend.rt[7] == blend.rt[0]
    assert repr(blend).startswith("BlendState(dither, rt=(blend_enable rgb_func=add")
    faces = words(3, 1 | 7 << 1 | 2 << 4 | 0xFF << 13 | 0xF << 21, 0, 0x3F000000)
    dsa = objects.DepthStencilAlphaState.decode(faces)
    assert dsa.depth_func is Compare.NEVER
    assert dsa.stencil[0].valuemask == 0xFF
    assert dsa.stencil[0].writemask == 0xF
    assert not dsa.stencil[1].enabled
    assert dsa.alpha_ref_value == 0.5


def test_lengths() -> None:
    """As design tables have them; a draw prints only what it uses."""
    assert objects.BlendState.length_text() == "11"
    assert objects.RasterizerState.length_text() == "9"
    assert objects.DepthStencilAlphaState.length_text() == "5"
    assert objects.VertexElements.length_text() == "1 + 4n"
    assert objects.SamplerView.length_text() == "6"
    assert objects.SamplerState.length_text() == "9"
    assert work_commands.Blit.length_text() == "21"
    assert work_commands.Transfer3d.length_text() == "13"
    assert state_commands.SetVertexBuffers.length_text() == "3n"
    assert state_commands.SetIndexBuffer.length_text() == "1 or 3"
    draw = work_commands.DrawVbo(0, 36, Primitive.TRIANGLES, instance_count=1, max_index=35)
    assert draw.text() == "triangles start=0 count=36 min_index=0 max_index=35"
    assert len(draw.encode()) == 4 * 12
    assert state_commands.SetIndexBuffer().encode() == words(0)
    assert len(state_commands.SetIndexBuffer(3, 2).encode()) == 12


def test_streams() -> None:
    """Commands in order; what is wrong is named with its place, and the rest is read."""
    good = [
        BindObject(ObjectKind.BLEND, 3),
        state_commands.BindShader(4, Stage.FRAGMENT),
        work_commands.EndTransfers(bytes(40)),
        state_commands.SetStencilRef(1, 2),
    ]
    data = b"".join(one.encode_command() for one in good)
    assert [one.command for one in decode_stream(data)] == good
    assert [one.word for one in decode_stream(data)] == [0, 2, 5, 16]
    bad = words(200, 4 | 2 << 16, 0, 0) + good[0].encode_command() + words(8 | 12 << 16, 1)
    found = list(decode_stream(bad))
    assert found[2].command == good[0]
    problems = [one.command for one in found if isinstance(one.command, Wrong)]
    assert problems == [
        Wrong("GL-002", "word 0: there is no command 200"),
        Wrong("GL-002", "SET_VIEWPORT_STATE at word 1: viewports: 1 words are no multiple of 6"),
        Wrong("GL-003", "DRAW_VBO at word 6 has 12 words, but only 1 are left"),
    ]
    assert isinstance(next(iter(decode_stream(b"\x01\x02"))).command, Wrong)
    kind = next(iter(decode_stream(words(1 | 77 << 8 | 1 << 16, 3)))).command
    assert isinstance(kind, Wrong)
    assert "no object of kind 77" in kind.text


def test_all_commands_of_mesa_are_declared() -> None:
    """62 numbers; Mesa 22.3 has no code that sends 58 and 60 (parts of videos)."""
    assert set(COMMANDS) == set(range(62)) - {58, 60}
    assert set(MESSAGES) == set(range(1, 15))
    assert set(OBJECTS) == {kind for kind in ObjectKind if kind}
    assert all(issubclass(one, Command) and one.__doc__ for one in COMMANDS.values())


def test_capabilities() -> None:
    """The bytes at the offsets that Mesa reads."""
    data = capabilities.videocore().encode()
    assert len(data) == 1376

    def at(offset: int) -> int:
        return int.from_bytes(data[offset : offset + 4], "little")

    assert (at(0), at(264), at(280), at(288), at(356)) == (2, 130, 1, 0x7F, 8)
    assert (at(484), at(488), at(492), at(556)) == (2048, 1, 2048, 12)
    assert at(392) == 1 << 15 | 1 << 17
    assert at(764) == 16
    assert at(832) == at(852) == 65536
    assert data[696:760].rstrip(b"\0") == b"vc4lab VideoCore IV"
    mask = int.from_bytes(data[4:68], "little")
    formats = {Format(number).name for number in range(512) if mask >> number & 1}
    assert formats == set(capabilities.TEXTURES)
    assert capabilities.Capabilities.decode(data) == capabilities.videocore()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("R8G8B8A8_UNORM", (1, 1, 4)),
        ("B5G6R5_UNORM", (1, 1, 2)),
        ("R32G32B32_FLOAT", (1, 1, 12)),
        ("S8_UINT_Z24_UNORM", (1, 1, 4)),
        ("ETC1_RGB8", (4, 4, 8)),
        ("ETC2_RGBA8", (4, 4, 16)),
        ("ASTC_8x5", (8, 5, 16)),
        ("R9G9B9E5_FLOAT", (1, 1, 4)),
        ("Z32_FLOAT_S8X24_UINT", (1, 1, 8)),
        ("R10G10B10A2_USCALED", (1, 1, 4)),
    ],
)
def test_layouts(name: str, expected: tuple[int, int, int]) -> None:
    layout = layout_of(Format[name])
    assert layout is not None
    assert (layout.block_width, layout.block_height, layout.block_bytes) == expected


def test_numbers_of_formats() -> None:
    numbers = {1: "B8G8R8A8_UNORM", 7: "B5G6R5_UNORM", 22: "X8Z24_UNORM", 31: "R32G32B32A32_FLOAT"}
    numbers |= {64: "R8_UNORM", 67: "R8G8B8A8_UNORM", 134: "R8G8B8X8_UNORM", 226: "ETC1_RGB8"}
    assert {number: Format(number).name for number in numbers} == numbers
    assert layout_of(9999) is None
    assert layout_of(Format.NONE) is None


def test_the_page_is_current() -> None:
    """Write it anew with `python -m vc4lab.cli.virgl_page > docs/virgl.md`."""
    page = write_page()
    assert (ROOT / "docs" / "virgl.md").read_text() == page
    names = set(re.findall(r"^\| \d+ \| ([A-Z0-9_]+) \|", page, re.M))
    assert {one.name for one in COMMANDS.values()} <= names
    assert {one.name for one in MESSAGES.values()} <= names
