"""Each reason to refuse a job or to warn of it, in words."""

from dataclasses import replace

import pytest
from tests.support.job_maker import LOOKUP, PAGE, SIZE, SWITCH, Maker

from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.jobs import build_submit
from vc4lab.drm.uapi.submit import JobError, Submit
from vc4lab.memory import MEMORY_SIZE
from vc4lab.records import declarations as d
from vc4lab.records.control import build
from vc4lab.records.states import GlShaderState, LineWidth, NvShaderState

MODE, START = build(d.TileBinningMode, tiles_x=1, tiles_y=1), build(d.StartTileBinning)
STATE, END = build(GlShaderState, attributes=1), build(d.IncrementSemaphore) + build(d.Flush)
INDEXED = build(d.GemHandles) + build(d.IndexedPrimitives, index_type=1, length=6, maximum_index=3)
ARRAY = build(d.VertexArrayPrimitives, length=10)


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (MODE + START + b"\x7F" + END, "DRM-006", "byte 17: reserved id 0x7f"),
        (MODE + START + build(NvShaderState) + END, "DRM-006", "(65) is not accepted"),
        (MODE + START + build(d.ClearColours) + END, "DRM-006", "(114) is not accepted"),
        (MODE + START + build(LineWidth)[:-1], "DRM-006", "byte 17: Line width: cut off"),
        (MODE + END, "DRM-007", "byte 17: the list never starts"),
        (MODE + START + build(d.Halt) + END, "DRM-007", "byte 17: the list does not end"),
        (MODE + build(d.Halt) + START + END, "DRM-007", "byte 16: the list never starts"),
        (MODE + START + build(d.IncrementSemaphore), "DRM-007", "(7) is not at the list's end"),
        (MODE + START + build(d.Flush), "DRM-007", "byte 17: the list does not end"),
        (MODE + START + build(d.Flush) + END, "DRM-007", "byte 17: Flush (4) is not at"),
        (MODE + MODE + START + END, "DRM-007", "byte 16: record 112 twice"),
        (build(d.TileBinningMode) + START + END, "DRM-007", "byte 0: an empty tile grid"),
        (MODE[:-1] + b"\x02" + START + END, "DRM-006", "byte 0: double buffer or 64-bit"),
        (START + MODE + END, "DRM-007", "byte 0: record 6 twice, or before"),
        (MODE + START + START + END, "DRM-007", "byte 17: record 6 twice, or before"),
        (MODE + START + STATE + STATE + END, "DRM-008", "byte 22: more shader states than the 1"),
        (MODE + START + b"\x40\x21\0\0\0" + END, "DRM-008", "contains an address (0x20)"),
        (MODE + START + ARRAY + END, "DRM-007", "byte 17: a draw before any shader state"),
        (MODE + START + INDEXED + END, "DRM-007", "byte 26: a draw before any shader state"),
        (
            MODE + START + STATE + build(d.GemHandles, index0=9) + INDEXED[9:] + END,
            "DRM-005", "byte 31: index buffer: buffer index 9 of a list of 2 (rule 9.2)",
        ),
        (
            MODE + START + STATE + INDEXED[:9]
            + build(d.IndexedPrimitives, index_type=1, length=1, address=SIZE - 1) + END,
            "DRM-012", f"1 indices of 2 bytes at offset {SIZE - 1} of a buffer of {SIZE} bytes",
        ),
        (
            MODE + START + STATE + build(d.VertexArrayPrimitives, length=2, first=2**32 - 2) + END,
            "DRM-012", "byte 22: 2 vertices from 4294967294 on",
        ),
    ],
)  # fmt: skip
def test_binning_lists_that_are_refused(maker: Maker, body: bytes, code: str, text: str) -> None:
    job = maker.job([maker.shader("")] * 3, [], bin_cl=body)
    built, _, found = maker.builder.build(job)
    assert built is None
    (message,) = found
    assert code in message
    assert text in message


def refusal(maker: Maker, job: Submit) -> str:
    built, _, found = maker.builder.build(job)
    assert built is None
    assert "byte 17: " in found[-1], "where record 64 stands"
    return found[-1]


def test_records_that_are_refused(maker: Maker) -> None:
    plain = maker.shader("")
    job = maker.job([plain] * 3, [])
    short = replace(job, shader_rec=job.shader_rec[:-1])
    size = len(job.shader_rec)
    text = f"the stream has {size - 1} bytes left, a record with 1 attributes needs {size}"
    assert text in refusal(maker, short)
    for number, name in enumerate(("fragment", "vertex", "coordinate")):
        shaders = [plain] * 3
        shaders[number] = 7
        text = f"{name} shader: buffer index 7 of a list of 2 (rule 9.3)"
        assert text in refusal(maker, maker.job(shaders, []))
        shaders[number] = 0
        text = f"{name} shader: its buffer is not a shader buffer (rule 9.3)"
        assert text in refusal(maker, maker.job(shaders, []))
        record = bytearray(job.shader_rec)
        record[4 * 4 + (4, 16, 28)[number]] = 8
        text = f"{name} shader: code not at a buffer's start (rule 9.3)"
        assert text in refusal(maker, replace(job, shader_rec=bytes(record)))
    record = bytearray(job.shader_rec)
    record[12] = 5
    text = "attribute 0: buffer index 5 of a list of 2 (rule 9.3)"
    assert text in refusal(maker, replace(job, shader_rec=bytes(record)))
    highest = SIZE // 255 + 1
    far = maker.job([plain] * 3, [], stride=255, highest=highest)
    text = f"attribute 0: vertex {highest} x 255 + 12 bytes in a buffer of {SIZE}"
    assert text in refusal(maker, far)


def test_uniforms_that_are_refused(maker: Maker) -> None:
    plain, fragment = maker.shader(""), maker.shader(LOOKUP)
    shaders = [fragment, plain, plain]
    text = "fragment shader needs 12 bytes, the uniform stream has 8 left (rule 9.3)"
    assert text in refusal(maker, maker.job(shaders, [0, 0]))
    text = "fragment shader's texture: buffer index 9 of a list of 3 (rule 9.4)"
    assert text in refusal(maker, maker.job(shaders, [9, 0, 0]))
    text = f"request 0 of TMU0: lookups up to offset 16 + {SIZE - 19} of a buffer of {SIZE} bytes"
    assert text in refusal(maker, maker.job(shaders, [0, SIZE - 19, 16]))
    found = refusal(maker, maker.job(shaders, [0, 0, SIZE]))
    assert "DRM-010" in found
    assert f"lookups at offset {SIZE} of a buffer of {SIZE} bytes (rule 9.4)" in found


def test_threads_that_are_refused(maker: Maker) -> None:
    plain, switching = maker.shader(""), maker.shader(SWITCH)
    text = "a fragment shader switches threads, its record says single threaded"
    assert text in refusal(maker, maker.job([switching, plain, plain], []))
    assert "a vertex shader switches threads" in refusal(maker, maker.job([plain, switching, plain], []))
    maker.single = 0
    text = "a fragment shader never switches threads, its record says multi-threaded"
    assert text in refusal(maker, maker.job([plain] * 3, []))


def test_a_job_goes_on_after_each_warning(maker: Maker) -> None:
    """Vertex numbers of more than 16 bits, in every draw, and a shader that is not known yet."""
    shader = maker.shader("")
    draws = build(d.VertexArrayPrimitives, length=0x10001) * 3
    body = MODE + START + (STATE + draws) * 2 + END
    job = maker.job([shader] * 3, [], stride=0, bin_cl=body, shader_rec_count=2)
    job = replace(job, shader_rec=job.shader_rec * 2)
    built, data, found = maker.builder.build(job)
    assert built is not None
    places = [22, 32, 42, 57, 67, 77]
    assert len(found) == 6
    for message, place in zip(found, places, strict=True):
        assert "CLE-015" in message
        assert f"byte {place}: vertex number 65536 does not fit in 16 bits" in message
    assert maker.builder.build(job)[:2] == (built, data)


@pytest.mark.parametrize("highest", [0x7FFFFFFF, 0xFFFFFFFE])
def test_the_largest_vertex_numbers(maker: Maker, highest: int) -> None:
    shader = maker.shader("")
    for stride in (1, 0xFFFFFFFF):
        job = maker.job([shader] * 3, [], 1, True, stride, highest)
        assert f"vertex {highest} x {stride} + 12 bytes" in refusal(maker, job)
    assert maker.builder.accepts(maker.job([shader] * 3, [], 1, True, 0, highest))


def test_a_refused_job_writes_only_where_its_streams_have_room(maker: Maker) -> None:
    """Shader states for which there are no records; the uniforms of the first one are written."""
    shader = maker.shader("mov r0, unif ; nop\n" * 16)
    job = maker.job([shader] * 3, [0x55555555] * 48)
    states = 50_000
    job = replace(job, bin_cl=MODE + START + STATE * states + END, shader_rec_count=states)
    room = 2 * len(job.bin_cl) + len(job.shader_rec) + len(job.uniforms) + 4 * PAGE
    lists, after = maker.builder.workspace.lists, 8 << 20
    maker.memory.fill(lists, after)
    assert "the stream has 0 bytes left" in maker.builder.build(job)[2][0]
    assert not any(maker.memory.read(lists + room, after - room))


def test_lists_that_have_no_room(maker: Maker) -> None:
    maker.builder.workspace = replace(maker.builder.workspace, lists=MEMORY_SIZE - 4 * PAGE)
    with pytest.raises(JobError, match="DRM-004"):
        build_submit(maker.job([maker.shader("")] * 3, []), maker.memory, maker.builder.workspace, Reporter())
