"""The kernel's validation rules, one by one, and all recorded shaders against them."""

import json
import zlib
from functools import cache
from pathlib import Path

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.findings import texture_problem
from vc4lab.drm.kernel.jobs import check_submit, check_tiles
from vc4lab.drm.kernel.native.bin_list import COPIED, SPECIAL
from vc4lab.drm.kernel.native.context import JobContext, TextureFinding
from vc4lab.drm.kernel.native.texture_check import check_texture
from vc4lab.drm.kernel.shader_rules import Violation, check_shader
from vc4lab.drm.uapi.submit import Buffer, JobError, Submit
from vc4lab.qpu.isa.encoding import Instruction, words_of
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.texture import TextureConfig, TextureType
from vc4lab.simd import NativeModule, build

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"
END = "\nnop ; nop ; thrend\nnop\nnop\n"


def check(text: str, end: str = END) -> object:
    return check_shader(assemble(text + end).words)


def shader_blobs() -> dict[str, int]:
    found = {}
    for path in JOBS.glob("*/job*/submit.json"):
        for buffer in json.loads(path.read_text())["bos"]:
            if buffer.get("shader") and "blob" in buffer:
                found[buffer["blob"]] = buffer["size"]
    return found


def test_recorded_shaders_pass() -> None:
    blobs = shader_blobs()
    assert len(blobs) > 40
    threaded = 0
    for name, size in blobs.items():
        data = zlib.decompress((JOBS / "blobs" / name).read_bytes()).ljust(size, b"\0")
        threaded += check_shader(words_of(data)).threaded
    assert threaded


NOPS = "nop\nnop\nnop\n"
SWITCH = "nop ; nop ; thrsw\n"
CLAMP = "max r0, r0, 0 ; nop\nmin r1, r0, unif ; nop\n"
AWAY = f"brr -, next\n{NOPS}:next\n"
RESET = "ldi r0, 4\nadd unif_addr, r0, unif ; nop\n"


@pytest.mark.parametrize(
    ("text", "code", "rule"),
    [
        ("nop ; nop ; bkpt", "DRM-018", 1),
        ("nop ; nop ; loadam", "DRM-018", 1),
        ("mov irq, 1 ; nop", "DRM-018", 3),
        ("mov tmurs, 1 ; nop", "DRM-018", 3),
        ("mov vw_addr, r0 ; nop", "DRM-018", 3),
        ("mov vr_addr, r0 ; nop", "DRM-018", 3),
        ("mov mutex, r0 ; nop", "DRM-018", 3),
        ("mov unif_addr_rel, r0 ; nop", "DRM-019", 4),
        ("mov unif_addr, unif ; nop", "DRM-019", 5),
        ("add unif_addr, r0, unif ; nop", "DRM-019", 5),
        ("ldi r0, 8\nadd unif_addr, r0, unif ; nop", "DRM-019", 5),
        ("ldi r0, 4\nadd.zs unif_addr, r0, unif ; nop", "DRM-019", 5),
        ("ldi r0, 4\nadd unif_addr, r0, r1 ; nop", "DRM-019", 5),
        ("ldi r0, 4\nmov r0, 5 ; nop\nadd unif_addr, r0, unif ; nop", "DRM-019", 5),
        (AWAY + "mov r0, unif ; nop", "DRM-019", 6),
        (AWAY + "mov t0t, r0 ; nop", "DRM-019", 6),
        ("mov t0t, r0 ; mov t1t, r0", "DRM-020", 7),
        ("mov t0t, unif ; nop", "DRM-020", 8),
        ("mov t0t, r0 ; nop\n" * 5, "DRM-020", 9),
        ("mov t0s, r0 ; nop", "DRM-020", 10),
        ("add t0s, r0, unif ; nop", "DRM-020", 10),
        ("max r0, r0, 1 ; nop\nmin r1, r0, unif ; nop\nadd t0s, r1, unif ; nop", "DRM-020", 10),
        (CLAMP + "mov r1, r2 ; nop\nadd t0s, r1, unif ; nop", "DRM-020", 10),
        (CLAMP + "add t0s, r1, r2 ; nop", "DRM-020", 10),
        (CLAMP + SWITCH + NOPS + "add t0s, r1, unif ; nop", "DRM-020", 10),
        ("mov t0t, r0 ; nop\n" + AWAY + "mov t0s, r0 ; nop", "DRM-020", 11),
        (":a\nbra -, a\n" + NOPS, "DRM-021", 12),
        (":a\nbrr ra0, a\n" + NOPS, "DRM-021", 12),
        ("brr -, next\nnop\nbrr -, next\nnop\nnop\nnop\n:next\n", "DRM-021", 12),
        (SWITCH + "nop\nbrr -, next\n" + NOPS + ":next\n", "DRM-021", 12),
        (SWITCH + "nop\n" + SWITCH, "DRM-021", 14),
        (SWITCH + "mov ra16, r0 ; nop", "DRM-022", 15),
        ("mov r0, rb31 ; nop\n" + SWITCH, "DRM-022", 15),
    ],
)
def test_shader_rules(text: str, code: str, rule: int) -> None:
    with pytest.raises(Violation) as caught:
        check(text)
    assert (caught.value.code, caught.value.rule) == (code, rule), str(caught.value)
    assert f"rule 9.5.{rule}" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "mov r0, unif ; nop",
        RESET + "mov r1, unif ; nop",
        AWAY + RESET + "mov r1, unif ; nop\nmov t0t, r1 ; nop\nmov t0s, r1 ; nop",
        CLAMP + "nop\nadd t0s, r1, unif ; nop",
        CLAMP + SWITCH + "add t0s, r1, unif ; nop",
        "mov t0b, r0 ; nop\nmov t0r, r0 ; nop\nmov t0t, r0 ; nop\nmov t0s, r0 ; nop",
        "mov ra16, r0 ; mov rb31, r0",
        SWITCH + NOPS + SWITCH + "mov ra15, r0 ; nop",
        "mov r0, mutex ; nop",
        "ldi vw_setup, 0x80000000",
    ],
)
def test_what_is_accepted(text: str) -> None:
    check(text)


def test_clamps_name_their_uniform() -> None:
    found = check_shader(assemble(f"mov r3, unif ; nop\n{CLAMP}add t0s, r1, unif ; nop{END}").words)
    assert found.clamps == {3: 1}
    assert not found.threaded
    assert found.length == 7


def test_the_end() -> None:
    for end in ("", "\nnop ; nop ; thrend\nnop\n"):
        with pytest.raises(Violation, match="does not end"):
            check("nop", end)
    with pytest.raises(Violation, match="does not end"):
        check_shader([])


def test_branches_stay_inside() -> None:
    nop = assemble("nop").words[0]
    end = assemble(END).words
    branch = assemble(":a\nbrr -, a").words[0] & ~0xFFFFFFFF
    for distance, message in ((-48, "leaves"), (800, "leaves"), (4, "multiple"), (0, None)):
        words = [nop, branch | distance & 0xFFFFFFFF, nop, nop, nop, *end]
        assert Instruction.decode(words[1])
        if message is None:
            check_shader(words)
            continue
        with pytest.raises(Violation, match=message):
            check_shader(words)
    with pytest.raises(Violation, match="after the program end"):
        check_shader([nop, end[0], branch, nop, nop, nop, *end])


# -- textures ----------------------------------------------------------------------------------

PAGE = 4096


@cache
def checker() -> NativeModule:
    return build("texture_check", {"check": check_texture}, float_mode="caller")


def why_refused(parameters: list[int], size: int) -> str | None:
    context = JobContext()
    words = [*parameters, 0, 0, 0][:4]
    reason = TextureFinding(checker()["check"](context.address, *words, size))
    if reason == TextureFinding.ACCEPTED:
        return None
    return texture_problem(reason, words, size, context.value, context.more)  # type: ignore[arg-type]


def problem(size: int, **fields: object) -> str | None:
    config = TextureConfig(**({"width": 64, "height": 64} | fields))  # type: ignore[arg-type]
    return why_refused(config.parameters(), size)


@pytest.mark.parametrize("kind", list(TextureType))
def test_texture_types(kind: TextureType) -> None:
    refused = kind in (12, 13, 14, 15, 17)
    assert bool(problem(1 << 20, type=kind)) == refused
    assert why_refused([2 << 4, 1 << 31 | 64 << 8 | 64 << 20], 1 << 20), "reserved 18"


def test_texture_sizes() -> None:
    assert problem(64 * 64 * 4) is None
    assert "level 0 ends" in str(problem(64 * 64 * 4 - 1))
    assert problem(64 * 64 * 4 + PAGE, base=PAGE) is None
    assert problem(65 * 64 * 4, width=65), "T format needs whole tiles"
    assert problem(17 * 64 * 4, width=17, height=64) is not None, "17 is padded to 32"
    assert problem(12 * 64 * 4, width=9, height=64) is None, "linear tile: padded to 12"
    assert problem(16 * 16 * 8, type=TextureType.ETC1) is None
    assert problem(16 * 16 * 8 - 1, type=TextureType.ETC1)
    assert problem(66 * 64 * 4, type=TextureType.RGBA32R, width=65), "raster: padded to 68"
    assert problem(68 * 64 * 4, type=TextureType.RGBA32R, width=65) is None
    assert problem(1 << 24, width=2048, height=2048) is None
    assert problem((1 << 24) - 1, width=2048, height=2048)


def test_mip_levels_lie_below_the_base() -> None:
    below = 32 * 32 * 4 + 16 * 16 * 4
    assert problem(1 << 20, levels=3, base=2 * PAGE) is None
    assert "level 2 of 1024 bytes" in str(problem(1 << 20, levels=3, base=PAGE))
    assert "level 1" in str(problem(1 << 20, levels=2, base=0))
    assert below == 5120


def test_cube_maps() -> None:
    stride = 64 * 64 * 4
    assert problem(6 * stride, cube=True, cube_stride=stride) is None
    assert "level 0 ends" in str(problem(6 * stride - 1, cube=True, cube_stride=stride))
    p0, p1, p2, _ = TextureConfig(width=64, height=64, cube=True, cube_stride=stride).parameters()
    assert "without a stride" in str(why_refused([p0, p1], 1 << 20))
    assert "twice" in str(why_refused([p0, p1, p2, p2], 1 << 20))


# -- descriptions ------------------------------------------------------------------------------


def submit(**fields: object) -> Submit:
    base = {
        "bin_cl": b"", "shader_rec": b"", "uniforms": b"", "buffers": (Buffer(1, 0, PAGE),),
        "shader_rec_count": 0, "width": 64, "height": 64, "min_x_tile": 0, "min_y_tile": 0,
        "max_x_tile": 0, "max_y_tile": 0,
    }  # fmt: skip
    return Submit(**(base | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"flags": 16}, "DRM-017"),
        ({"padding": 1}, "DRM-017"),
        ({"buffers": ()}, "DRM-023"),
        ({"shader_rec_count": 0xFFFFFFFF}, "DRM-023"),
        ({}, None),
    ],
)
def test_descriptions(fields: dict[str, object], code: str | None) -> None:
    if code is None:
        check_submit(submit(**fields), Reporter(strict=True))
        return
    with pytest.raises(JobError, match=code):
        check_submit(submit(**fields), Reporter())


def test_tiles_beyond_the_grid() -> None:
    reporter = Reporter()
    check_tiles(submit(max_x_tile=1, max_y_tile=1), 2, 2, reporter)
    assert not reporter.items
    check_tiles(submit(max_x_tile=2, max_y_tile=1), 2, 2, reporter)
    assert reporter.has("DRM-024"), "the kernel compares with > and lets this pass"
    with pytest.raises(JobError, match="DRM-014"):
        check_tiles(submit(max_x_tile=3), 2, 2, reporter)


def test_records_that_binning_lists_may_have() -> None:
    """Those of Linux's vc4_validate.c, and none that a new declaration would bring in."""
    copied = {0, 1, 5, 56, *range(96, 104), 105, 106}
    checked = {4, 6, 7, 32, 33, 64, 112, 254}
    assert copied | checked == COPIED | SPECIAL
