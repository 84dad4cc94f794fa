"""Four samples a pixel: drawn, resolved, copied; what masks, alpha and blending do with them."""

from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import BGRA, DEPTH_STENCIL, RGBA, Drawing, stencil_face
from tests.driver.shaders import POSITION_ONLY, UNIFORM_COLOUR
from tests.mesa.conftest import RawClient, RunningServer
from tests.support.compiled_shaders import check_rules

from vc4lab.driver.compiler.compile import compile_fragment
from vc4lab.driver.compiler.interface import ColorTarget, FragmentKey
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import TgsiError
from vc4lab.mesa.protocol import messages, objects, state_commands, work_commands
from vc4lab.mesa.protocol.codes import BlendFactor, Compare, Filter, LogicOp, Primitive, Stage, StencilOp
from vc4lab.mesa.protocol.formats import Format
from vc4lab.qpu.isa.registers import Write

Array = np.ndarray[Any, Any]
WIDTH, HEIGHT = 70, 45
COLOURS, DEPTHS = 15, 16 | 32
HALF_PLANE = np.array([(-1.1, -1, 0, 1), (1.3, -1, 0, 1), (-1.1, 1.7, 0, 1)])
"""Its long edge crosses many pixels; the first pixel is inside, the last one outside."""
WHOLE = np.array([(-1, -1, 0, 1), (3, -1, 0, 1), (-1, 3, 0, 1)])


class Sampled(Drawing):
    """A picture of four samples with depth and stencil, and one to resolve into."""

    def __init__(self, client: Any, format_: Any = RGBA) -> None:
        super().__init__(client)
        self.format = format_
        self.colour = self.texture(WIDTH, HEIGHT, format_, samples=4)
        self.zs = self.texture(WIDTH, HEIGHT, DEPTH_STENCIL, bind=1, samples=4)
        self.flat = self.texture(WIDTH, HEIGHT, format_)
        self.target(self.colour, self.zs)
        self.viewport(WIDTH, HEIGHT)
        self.defaults()
        self.rasterizer(multisample=True)
        self.shaders(POSITION_ONLY, UNIFORM_COLOUR)
        self.clear(7, (0, 0, 0, 1))

    def triangle(self, colour: Any, corners: Any = HALF_PLANE, z: float = 0.0) -> None:
        """One of a colour."""
        placed = np.array(corners, float)
        placed[:, 2] = z
        self.constants(Stage.FRAGMENT, colour)
        self.vertices(placed, 4)
        self.draw(Primitive.TRIANGLES, 3)

    def copied(self, target: int, source: int, box: Any = None, mask: int = COLOURS) -> None:
        """A box of one into the same place of another; all of it without a box."""
        x, y, width, height = box or (0, 0, WIDTH, HEIGHT)
        place = x, y, 0, width, height, 1
        formats = self.shapes[target][0], self.shapes[source][0]
        self.client.submit(
            work_commands.Blit(
                mask, Filter.NEAREST, False, False, False, (state_commands.Scissor(0, 0, 0, 0),),
                target, 0, formats[0], place, source, 0, formats[1], place,
            )
        )  # fmt: skip

    def resolved(self, box: Any = None) -> Array:
        """The means of all samples."""
        self.copied(self.flat, self.colour, box)
        return self.get(self.flat)


@pytest.fixture
def sampled(client: RawClient) -> Sampled:
    return Sampled(client)


@pytest.fixture(autouse=True)
def _without_messages(gpu: RunningServer) -> Any:
    yield
    assert not gpu.codes()


def levels(picture: Array, component: int = 0) -> set[int]:
    """The values that a component has."""
    return set(np.unique(picture[..., component]).tolist())


def test_edges_have_the_shares_of_samples(sampled: Sampled) -> None:
    """Inside 255, outside 0, at the edge quarters between; and each of them is there."""
    sampled.triangle((1, 1, 1, 1))
    picture = sampled.resolved()
    assert levels(picture) == {0, 64, 128, 191, 255}
    assert (picture[0, 0, 0], picture[-1, -1, 0]) == (255, 0)


def test_without_multisampling_there_are_none(sampled: Sampled) -> None:
    """All samples are as the pixel's centre: the picture is that of one sample."""
    sampled.rasterizer(multisample=False)
    sampled.triangle((1, 1, 1, 1))
    picture = sampled.resolved()
    single = sampled.texture(WIDTH, HEIGHT, RGBA)
    sampled.target(single)
    sampled.clear(4, (0, 0, 0, 1))
    sampled.triangle((1, 1, 1, 1))
    assert (picture == sampled.get(single)).all()
    assert levels(picture) == {0, 255}


def test_two_samples_are_four(sampled: Sampled) -> None:
    """Who asks for two gets what the chip has."""
    two = sampled.texture(WIDTH, HEIGHT, RGBA, samples=2)
    sampled.target(two)
    sampled.clear(4, (0, 0, 0, 1))
    sampled.triangle((1, 1, 1, 1))
    sampled.copied(sampled.flat, two)
    assert levels(sampled.get(sampled.flat)) == {0, 64, 128, 191, 255}


@pytest.mark.parametrize("box", [(0, 0, 64, 32), (32, 0, 38, 45), (3, 5, 21, 30), (69, 44, 1, 1)])
def test_parts_are_resolved_as_the_whole(sampled: Sampled, box: Any) -> None:
    """Whole tiles by the tile buffer, others by the processor: the same bytes; the rest stays."""
    sampled.triangle((1, 0.5, 0.25, 1))
    whole = sampled.resolved()
    sampled.put(sampled.flat, np.full((HEIGHT, WIDTH, 4), 7, np.uint8))
    part = sampled.resolved(box)
    x, y, width, height = box
    inside = np.zeros((HEIGHT, WIDTH), bool)
    inside[y : y + height, x : x + width] = True
    assert (part[inside] == whole[inside]).all()
    assert (part[~inside] == 7).all()


def test_orders_of_bytes_are_converted(sampled: Sampled) -> None:
    """From RGBA to BGRA and to 565, which the tile buffer stores itself."""
    sampled.triangle((1, 0.5, 0.25, 1))
    expected = sampled.resolved()
    for format_ in (BGRA, Format.B5G6R5_UNORM):
        other = sampled.texture(WIDTH, HEIGHT, format_)
        sampled.copied(other, sampled.colour)
        found = sampled.get(other)
        if format_ == BGRA:
            assert (found[..., [2, 1, 0, 3]] == expected).all()
        else:
            words = found.copy().view(np.uint16)[..., 0]
            assert (abs((words >> 11) * 255 / 31 - expected[..., 0]) <= 5).all()
            assert (abs((words & 31) * 255 / 31 - expected[..., 2]) <= 5).all()


def test_frames_go_on(sampled: Sampled) -> None:
    """What was stored is loaded again, samples and depths: a nearer triangle is in front."""
    sampled.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    sampled.triangle((1, 0, 0, 1), z=0.0)
    first = sampled.resolved()
    sampled.triangle((0, 1, 0, 1), WHOLE, z=0.5)  # only where nothing is
    both = sampled.resolved()
    assert (both[..., 0] == first[..., 0]).all()
    assert (abs(both[..., :2].astype(int).sum(-1) - 255) <= 1).all()
    assert levels(both, 1) == {0, 64, 128, 191, 255}


def test_stencils_are_tested_for_each_sample(sampled: Sampled) -> None:
    """A triangle in the stencil buffer, and all pixels where it is; cleared alone, none."""
    replace = stencil_face(Compare.ALWAYS, StencilOp.REPLACE)
    equal = stencil_face(Compare.EQUAL, StencilOp.KEEP)
    sampled.client.submit(state_commands.SetStencilRef(1, 1))
    sampled.depth(replace)
    sampled.triangle((0, 0, 0, 1))
    sampled.resolved()
    sampled.depth(equal)
    sampled.triangle((1, 1, 1, 1), WHOLE)
    picture = sampled.resolved()
    assert levels(picture) == {0, 64, 128, 191, 255}
    sampled.clear(4, (0, 0, 0, 1))
    sampled.clear(2)
    sampled.triangle((1, 1, 1, 1), WHOLE)
    assert levels(sampled.resolved()) == {0}


@pytest.mark.parametrize("mask", range(16))
def test_masks_leave_samples_out(sampled: Sampled, mask: int) -> None:
    """The mean says how many were drawn; without multisampling a mask says nothing."""
    sampled.client.submit(state_commands.SetSampleMask(mask | 0xFFFFFFF0))
    sampled.triangle((1, 1, 1, 1), WHOLE)
    share = (255 * mask.bit_count() + 2) // 4
    assert levels(sampled.resolved()) == {share}
    sampled.rasterizer(multisample=False)
    sampled.triangle((0, 1, 0, 1), WHOLE)
    assert levels(sampled.resolved(), 1) == {255}


def test_masked_samples_keep_their_depth(sampled: Sampled) -> None:
    """Two are drawn near; what comes after them farther away is drawn in the other two."""
    sampled.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    sampled.client.submit(state_commands.SetSampleMask(0x3))
    sampled.triangle((1, 0, 0, 1), WHOLE, z=-0.5)
    sampled.client.submit(state_commands.SetSampleMask(0xF))
    sampled.triangle((0, 1, 0, 1), WHOLE, z=0.5)
    assert sampled.resolved()[20, 30].tolist() == [128, 128, 0, 255]


@pytest.mark.parametrize(
    ("alpha", "count"), [(-1, 0), (0.1, 0), (0.3, 1), (0.5, 2), (0.8, 3), (1, 4), (3, 4)]
)
def test_alpha_becomes_coverage(sampled: Sampled, alpha: float, count: int) -> None:
    """Quarters of alpha are samples; a mask leaves some of them out; alpha_to_one comes after."""
    target = objects.BlendTarget(colormask=15)
    to_one = {"alpha_to_coverage": True, "alpha_to_one": True}
    sampled.bind(objects.BlendState(rt=(target,) * 8, **to_one))
    sampled.clear(4, (0, 0, 0, 0))
    sampled.triangle((1, 1, 1, alpha), WHOLE)
    share = (255 * count + 2) // 4
    assert levels(sampled.resolved()) == levels(sampled.resolved(), 3) == {share}
    sampled.clear(4, (0, 0, 0, 0))
    sampled.client.submit(state_commands.SetSampleMask(0xE))
    sampled.triangle((1, 1, 1, alpha), WHOLE)
    assert levels(sampled.resolved()) == {(255 * max(count - 1, 0) + 2) // 4}


@pytest.mark.parametrize("format_", [RGBA, BGRA, Format.B8G8R8X8_UNORM, Format.R8G8B8A8_SRGB])
@pytest.mark.parametrize(
    "blend",
    [
        {"rgb_src_factor": BlendFactor.SRC_ALPHA, "rgb_dst_factor": BlendFactor.INV_SRC_ALPHA},
        {"rgb_src_factor": BlendFactor.INV_DST_COLOR, "rgb_dst_factor": BlendFactor.DST_ALPHA},
        {"rgb_src_factor": BlendFactor.SRC_ALPHA_SATURATE, "colormask": 13},
        {"rgb_src_factor": BlendFactor.ZERO, "rgb_dst_factor": BlendFactor.SRC_COLOR},
    ],
)
def test_each_sample_is_blended(client: RawClient, format_: Any, blend: Any) -> None:
    """The mean of what four pictures of one sample have: samples drawn one by one by masks."""
    sampled = Sampled(client, format_)
    shades = [(0.9, 0.1, 0.4, 1), (0.2, 0.8, 0.6, 0.3), (0, 0.5, 1, 0), (1, 1, 0.1, 0.7)]
    for number, shade in enumerate(shades):
        sampled.client.submit(state_commands.SetSampleMask(1 << number))
        sampled.triangle(shade, WHOLE)
    sampled.client.submit(state_commands.SetSampleMask(0xF))
    new = (0.3, 0.6, 0.9, 0.4)
    sampled.blend(blend_enable=True, **blend)
    sampled.triangle(new, WHOLE)
    found = sampled.resolved()[20, 30].astype(int)
    single = sampled.texture(WIDTH, HEIGHT, format_)
    sampled.target(single)
    total = np.zeros(4, int)
    for shade in shades:
        sampled.defaults()
        sampled.triangle(shade, WHOLE)
        sampled.blend(blend_enable=True, **blend)
        sampled.triangle(new, WHOLE)
        total += sampled.get(single)[20, 30]
    compared = slice(0, 3) if format_ == Format.B8G8R8X8_UNORM else slice(0, 4)
    assert found[compared].tolist() == ((total + 2) // 4)[compared].tolist()


def test_samples_are_copied_as_they_are(sampled: Sampled) -> None:
    """To another picture of four, whole tiles and others: resolved, it is the same."""
    sampled.triangle((1, 0.5, 0.25, 1))
    whole = sampled.resolved()
    other = sampled.texture(WIDTH, HEIGHT, RGBA, samples=4)
    for box in (None, (0, 32, 32, 13), (5, 3, 40, 11)):
        sampled.target(other)
        sampled.clear(4, (0, 0, 0, 0))
        sampled.copied(other, sampled.colour, box)
        # What has the colours of samples, and not of their mean, shows a mask.
        sampled.client.submit(state_commands.SetSampleMask(0x1))
        sampled.triangle((0, 0, 1, 1), WHOLE)
        sampled.client.submit(state_commands.SetSampleMask(0xF))
        sampled.target(sampled.colour)
        sampled.copied(sampled.flat, other)
        found = sampled.get(sampled.flat)
        x, y, width, height = box or (0, 0, WIDTH, HEIGHT)
        part = found[y : y + height, x : x + width, 0].astype(int)
        mean = whole[y : y + height, x : x + width, 0].astype(int)
        assert set(np.unique(part)) <= {0, 64, 128, 191}
        assert (mean - part <= 64).all()
        assert (part <= mean).all()


@pytest.mark.parametrize("box", [None, (7, 9, 40, 30)])
def test_depths_and_stencils_are_copied(sampled: Sampled, box: Any) -> None:
    """Of four samples to four; and to one and back: the first sample in all."""
    replace = stencil_face(Compare.ALWAYS, StencilOp.REPLACE)
    sampled.client.submit(state_commands.SetStencilRef(3, 3))
    sampled.depth(replace, depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    sampled.triangle((1, 1, 1, 1), z=-0.5)
    other = sampled.texture(WIDTH, HEIGHT, DEPTH_STENCIL, bind=1, samples=4)
    flat = sampled.texture(WIDTH, HEIGHT, DEPTH_STENCIL, bind=1)
    sampled.copied(flat, sampled.zs, mask=DEPTHS)
    words = sampled.get(flat).view(np.uint32)[..., 0]
    assert words[0, 0] == 0x40000003
    assert words[-1, -1] == 0xFFFFFF00
    x, y, width, height = box or (0, 0, WIDTH, HEIGHT)
    for source, tones in ((sampled.zs, {0, 64, 128, 191, 255}), (flat, {0, 255})):
        sampled.target(0, other)
        sampled.clear(3, depth=1.0)
        sampled.copied(other, source, box, DEPTHS)
        sampled.target(sampled.colour, other)
        sampled.depth(stencil_face(Compare.EQUAL, StencilOp.KEEP))
        sampled.clear(4, (0, 0, 0, 1))
        sampled.triangle((1, 1, 1, 1), WHOLE)
        inside = sampled.resolved()[y : y + height, x : x + width]
        assert levels(inside) == tones


def test_texels_of_one_sample_go_to_all(sampled: Sampled) -> None:
    """A picture of one sample, as a draw and as a transfer of a part of its colours."""
    texels = np.random.default_rng(3).integers(0, 256, (HEIGHT, WIDTH, 4)).astype(np.uint8)
    sampled.put(sampled.flat, texels)
    sampled.copied(sampled.colour, sampled.flat)
    sampled.put(sampled.flat, np.zeros((HEIGHT, WIDTH, 4), np.uint8))
    assert (sampled.resolved() == texels).all()
    sampled.put(sampled.flat, np.full((HEIGHT, WIDTH, 4), 9, np.uint8))
    sampled.copied(sampled.colour, sampled.flat, mask=2)
    found = sampled.resolved()
    assert (found[..., 1] == 9).all()
    assert (found[..., [0, 2, 3]] == texels[..., [0, 2, 3]]).all()


def test_programs_write_four_words_only_where_samples_differ() -> None:
    """One write without blending; four with, and each program keeps the rules of the chip."""
    blend = objects.BlendTarget(
        blend_enable=True,
        rgb_src_factor=BlendFactor.SRC_ALPHA,
        rgb_dst_factor=BlendFactor.INV_SRC_ALPHA,
        alpha_src_factor=BlendFactor.ONE,
        alpha_dst_factor=BlendFactor.ZERO,
        colormask=15,
    )
    program = parse(UNIFORM_COLOUR)
    for changes in ({}, {"blend": blend}, {"colormask": 5}, {"logic_op": LogicOp.XOR}):
        for srgb in (False, True):
            color = ColorTarget(is_sampled=True, is_srgb=srgb, **changes)
            # In sRGB logic operations only turn blending off.
            reads = bool(changes) and not (srgb and "logic_op" in changes)
            for coverage in (False, True):
                key = FragmentKey(color=color, alpha_to_coverage=coverage, sample_mask=7)
                words = compile_fragment(program, key).words
                check_rules(words)
                written = [word >> place & 63 for word in words for place in (32, 38)]
                assert written.count(Write.TLB_COLOUR_MS) == (4 if reads else 0)
                assert written.count(Write.TLB_COLOUR_ALL) == (0 if reads else 1)
                assert written.count(Write.TLB_Z) == 1


def test_what_cannot_have_samples_is_refused(gpu: RunningServer, sampled: Sampled) -> None:
    """Frames whose surfaces have different numbers are left out, with a message."""
    flat = sampled.texture(WIDTH, HEIGHT, DEPTH_STENCIL, bind=1)
    sampled.target(sampled.colour, flat)
    sampled.triangle((1, 1, 1, 1))
    sampled.client.wait()
    assert gpu.codes() == ["GL-015"]
    gpu.reporter.items.clear()
    sampled.client.send(messages.ResourceCreate2(99, 2, Format.B5G6R5_UNORM, 2, 8, 8, 1, 1, 0, 4, 0))
    assert sampled.client.is_closed()
    assert gpu.codes() == ["GL-007"]
    gpu.reporter.items.clear()


FETCHED = """FRAG
PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1
PROPERTY FS_COORD_PIXEL_CENTER INTEGER
DCL IN[0], POSITION, LINEAR
DCL OUT[0], COLOR
DCL CONST[0]
DCL SAMP[0]
DCL SVIEW[0], 2D_MSAA, FLOAT
DCL TEMP[0..1], LOCAL
  0: F2I TEMP[0], IN[0]
  1: F2I TEMP[0].w, CONST[0].xxxx
  2: TXF TEMP[1], TEMP[0], SAMP[0], 2D_MSAA
  3: MOV OUT[0], TEMP[1]
  4: END
"""


@pytest.mark.parametrize("format_", [RGBA, BGRA, Format.R8G8B8A8_SRGB])
def test_single_samples_are_fetched(client: RawClient, format_: Any) -> None:
    """Each is what masks drew there; their mean is what is resolved."""
    sampled = Sampled(client, format_)
    shades = [(255, 0, 102, 255), (51, 204, 153, 0), (0, 102, 255, 51), (255, 255, 0, 153)]
    for number, shade in enumerate(shades):
        sampled.client.submit(state_commands.SetSampleMask(1 << number))
        sampled.triangle(np.array(shade) / 255, HALF_PLANE)
    sampled.client.submit(state_commands.SetSampleMask(0xF))
    resolved = sampled.resolved().astype(int)
    sampled.target(sampled.flat)
    sampled.shaders(POSITION_ONLY, FETCHED)
    sampled.sampled(sampled.colour)
    total = np.zeros((HEIGHT, WIDTH, 4), int)
    for number in range(4):
        sampled.triangle((number, 0, 0, 0), WHOLE)
        found = sampled.get(sampled.flat).astype(int)
        if format_ == RGBA:
            assert found[0, 0].tolist() == list(shades[number])
        assert len(np.unique(found.reshape(-1, 4), axis=0)) == 2
        total += found
    assert abs((total + 2) // 4 - resolved).max() <= (1 if format_ == RGBA else 2)


def test_depths_are_fetched(sampled: Sampled) -> None:
    """A depth is the red one of its texel."""
    sampled.depth(depth_enabled=True, depth_writemask=True, depth_func=Compare.LESS)
    sampled.triangle((1, 1, 1, 1), WHOLE, z=-0.5)
    sampled.resolved()
    sampled.depth()
    sampled.target(sampled.flat)
    sampled.shaders(POSITION_ONLY, FETCHED)
    sampled.sampled(sampled.zs)
    sampled.triangle((2, 0, 0, 0), WHOLE)
    assert levels(sampled.get(sampled.flat)) == {64}


def test_textures_and_operations_fit_each_other(gpu: RunningServer, sampled: Sampled) -> None:
    """Sampling several samples, or fetching one of a texture that has not, is left out."""
    flat = sampled.texture(8, 8)
    sampled.target(sampled.flat)
    sampled.shaders(POSITION_ONLY, FETCHED)
    sampled.sampled(flat)
    sampled.triangle((1, 1, 1, 1), WHOLE)
    plain = FETCHED.replace("TXF", "TEX").replace("2D_MSAA", "2D")
    sampled.shaders(POSITION_ONLY, plain)
    sampled.sampled(sampled.colour)
    sampled.triangle((1, 1, 1, 1), WHOLE)
    sampled.client.wait()
    assert gpu.codes() == ["GL-016", "GL-016"]
    assert "several samples" in gpu.reporter.items[1].message
    gpu.reporter.items.clear()


@pytest.mark.parametrize("name", ["TEX", "TXF"])
def test_other_textures_have_no_samples_to_fetch(name: str) -> None:
    text = FETCHED.replace("TXF", name)
    with pytest.raises(TgsiError, match="reads only") as caught:
        parse(text if name == "TEX" else text.replace("2D_MSAA", "2D"))
    assert caught.value.code == "TGSI-003"


def test_tall_windows_are_resolved_all_the_way_down(client: RawClient) -> None:
    """Raster stores of such frames go wrong from row 1024 on: these are the processor's."""
    sampled = Sampled(client)
    height = 1060
    tall = sampled.texture(32, height, RGBA, samples=4)
    window = sampled.texture(32, height, RGBA, bind=0x8A)
    sampled.target(tall)
    sampled.viewport(32, height)
    sampled.clear(4, (0, 0, 0, 1))
    sampled.triangle((1, 1, 1, 1))
    sampled.copied(window, tall, (0, 0, 32, height))
    found = sampled.get(window)
    assert levels(found) == {0, 64, 128, 191, 255}
    assert (found[:, 0, 0] == 255).all()
    assert found[-1, -1, 0] == 0
