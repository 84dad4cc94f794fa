"""Captured frames compared: what was changed is what is named, and where things lie does not count."""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.debug.frame_scene import copied, scene
from typer.testing import CliRunner

from vc4lab.cli.inside import looked_into
from vc4lab.cli.main import app
from vc4lab.debug.compare.align import aligned
from vc4lab.debug.compare.compare import Comparison, compare, compare_frames
from vc4lab.debug.compare.pairs import DrawPair
from vc4lab.debug.compare.pictures import find_makers, pixels_of
from vc4lab.debug.frame.capture import Capture
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.model import Patched
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.store import save_jobs
from vc4lab.jobs.unpack import unpack_jobs
from vc4lab.options import GpuOptions
from vc4lab.records.declarations import Nop
from vc4lab.v3d.unknowns import Unknowns

RUNS = Path(__file__).parents[1] / "data" / "vc4-jobs"
CUBE = RUNS / "kmscube_smooth"


@cache
def looked(run: Path) -> Capture:
    with looked_into(run) as found:
        return found


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a cube, unpacked."""
    folder = tmp_path_factory.mktemp("cube") / "unpacked"
    unpack_jobs(looked(CUBE).jobs, folder)
    return folder


def edited(source: Path, target: Path, name: str, change: Callable[[str], str]) -> Capture:
    """What an unpacked capture is after an edit, packed again."""
    shutil.copytree(source, target)
    (file,) = target.glob(name)
    before = file.read_text()
    file.write_text(change(before))
    assert file.read_text() != before
    packed = target.with_suffix(".vc4cap")
    save_jobs(open_jobs(target), packed)
    return Capture(packed)


def different(found: Comparison, frame: int = 3) -> list[DrawPair]:
    """The draws that differ: only that frame does."""
    assert [one.a.number for one in found.frames if one.a and not one.is_equal] == [frame]
    (job,) = next(one for one in found.frames if not one.is_equal).jobs
    return [one for one in job.draws if not one.is_equal]


def told(pairs: list[DrawPair]) -> list[tuple[str, str, str | None, str | None]]:
    """All differences of draws, each once."""
    return list(dict.fromkeys((d.what, d.where, d.a, d.b) for one in pairs for d in one.differences))


def replayed(capture: Capture) -> np.ndarray:
    """What the last frame draws when the capture is just replayed."""
    *_, (_, result) = JobsPlayer(capture.jobs).play()
    return np.asarray(result.image)


def test_a_capture_is_equal_to_itself() -> None:
    for source in (looked(CUBE).jobs, scene(multisample=True), copied()):
        found = compare(Capture(source), Capture(source))
        assert found.is_equal
        assert list(found.lines()) == [f"equal: {len(source.frames)} frame{'s' * (len(source.frames) > 1)}"]


def test_one_uniform(cube: Path, tmp_path: Path) -> None:
    changed = edited(
        cube, tmp_path / "x", "jobs/3/job-1-uniforms-*-0035a000.csv",
        lambda text: re.sub(r"^7,[^,]*,", "7,0.75,", text, flags=re.M),
    )  # fmt: skip
    pairs = different(compare(looked(CUBE), changed))
    assert len(pairs) == 6
    assert told(pairs) == [("vertex program", "uniform 7, read by instruction 10", "-0.61211216", "0.75")]


def test_one_bit_of_state(cube: Path, tmp_path: Path) -> None:
    changed = edited(
        cube, tmp_path / "x", "jobs/3/job-1-binning.txt",
        lambda text: text.replace("enable_forward clockwise", "enable_forward enable_reverse clockwise"),
    )  # fmt: skip
    found = compare(looked(CUBE), changed)
    pairs = different(found)
    assert told(pairs) == [("record 96 Configuration bits", "enable_reverse", "0", "1")]
    (job,) = found.frames[2].jobs
    frame = looked(CUBE).frame(3)
    assert {d.places for one in pairs for d in one.differences} == {(frame.draws[0].where(96),) * 2}
    assert job.pixels is not None
    assert job.pixels.mask is not None
    one, two = (replayed(capture) for capture in (looked(CUBE), changed))
    assert np.array_equal(job.pixels.mask, (one != two).any(axis=2))
    assert {maker.text() for maker in job.pixels.makers} <= {"draw 2", "draw 4", "draw 5"}, "hidden faces"
    assert sum(maker.count for maker in job.pixels.makers) == job.pixels.count


def test_state_of_the_binner(cube: Path, tmp_path: Path) -> None:
    changed = edited(
        cube, tmp_path / "x", "jobs/3/job-1-binning.txt", lambda text: text.replace("x=5120 y=", "x=4800 y=")
    )
    assert told(different(compare(looked(CUBE), changed))) == [
        ("record 105 Clipper XY scaling", "x", "5120", "4800")
    ]


def test_one_instruction(cube: Path, tmp_path: Path) -> None:
    changed = edited(
        cube, tmp_path / "x", "jobs/3/job-1-program-00359000.qasm",
        lambda text: text.replace("nop; mov r1.8b, r0\n", "nop; mov r1.8b, r3\n"),
    )  # fmt: skip
    found = compare(looked(CUBE), changed)
    pairs = different(found)
    assert told(pairs) == [("fragment program", "instruction 5", "nop; mov r1.8b, r0", "nop; mov r1.8b, r3")]
    pixels = found.frames[2].jobs[0].pixels
    assert pixels is not None
    assert {maker.text() for maker in pixels.makers} == {"draw 1", "draw 3", "draw 6"}, "faces that are seen"


def test_one_vertex(cube: Path, tmp_path: Path) -> None:
    changed = edited(
        cube, tmp_path / "x", "jobs/3/job-1-vertices-0022c000.csv",
        lambda text: re.sub(r"^2,.*$", "2,0.25,0.5,1.0", text, flags=re.M),
    )  # fmt: skip
    pairs = different(compare(looked(CUBE), changed))
    assert [one.a.number for one in pairs if one.a] == [1]
    ((what, where, a, b),) = told(pairs)
    assert (what, where, b) == ("attribute 0", "vertex 2", "(0.25, 0.5, 1.0)")
    assert a != b


def test_a_clear_colour(cube: Path, tmp_path: Path) -> None:
    """It stands in the rendering list, and no draw differs."""
    changed = edited(
        cube, tmp_path / "x", "jobs/3/job-2-rendering.txt",
        lambda text: re.sub(r"colour=0x\w+ ", "colour=0xff112233 ", text, count=1),
    )  # fmt: skip
    found = compare(looked(CUBE), changed)
    assert not different(found)
    (job,) = found.frames[2].jobs
    (difference,) = job.differences
    assert (difference.what, difference.where) == ("rendering list, record 114 Clear colours", "colour")
    assert difference.b == "0xff112233"
    assert job.pixels is not None
    (maker,) = job.pixels.makers
    assert maker.text() == "before any draw"


def dropped(capture: Path, draw: int) -> Capture:
    """A run whose third frame has a draw less."""
    with looked_into(capture) as found:
        frame = found.frame(3)
        address = frame.draws[draw - 1].address
    events = frame.source.events
    place = next(n for n, one in enumerate(events) if getattr(one, "register", "") == "CT0EA")
    events.insert(place, Patched(address, bytes([Nop.id]) * 10))
    return Capture(found.jobs)


@pytest.mark.parametrize("draw", [1, 3, 4, 6])
def test_a_draw_less(draw: int) -> None:
    found = compare(looked(CUBE), dropped(CUBE, draw))
    (pair,) = different(found)
    assert pair.a is not None
    assert (pair.a.number, pair.b) == (draw, None)
    pixels = found.frames[2].jobs[0].pixels
    if draw == 4:
        assert pixels is None, "a face in the back"
    else:
        assert pixels is not None
        assert [maker.text() for maker in pixels.makers] == [f"draw {draw} of A"]
    text = "\n".join(found.lines())
    assert f"first: draw {draw}, which is only in A" in text
    back = compare(dropped(CUBE, draw), looked(CUBE))
    assert [one.a for one in different(back)] == [None]


def relocated(run: Path, target: Path, move: Callable[[list[int]], list[int]]) -> Path:
    """A copy of a recorded run whose small buffers lie elsewhere: `move` gets their addresses."""
    shutil.copytree(run, target / run.name)
    shutil.copytree(RUNS / "blobs", target / "blobs")
    files = sorted((target / run.name).glob("*/submit.json"))
    tables = [json.loads(file.read_text()) for file in files]
    small = {one["addr"] for table in tables for one in table["bos"] if one["size"] == 4096}
    places = dict(zip(sorted(small), move(sorted(small)), strict=True))
    moved = 0
    for file, table in zip(files, tables, strict=True):
        for one in table["bos"]:
            new = places.get(one["addr"], one["addr"])
            moved += new != one["addr"]
            one["addr"] = new
        file.write_text(json.dumps(table))
    assert moved > 2
    return target / run.name


@pytest.mark.parametrize("name", ["kmscube_smooth", "glmark2_ideas", "glmark2_shading_shading_phong"])
def test_buffers_that_have_changed_places_are_no_difference(name: str, tmp_path: Path) -> None:
    """Programs and vertices lie elsewhere: every address of them in lists and records is another."""
    other = relocated(RUNS / name, tmp_path, lambda places: places[::-1])
    one, two = looked(RUNS / name), looked(other)
    draws = [capture.frame(3).draws[0] for capture in (one, two)]
    assert draws[0].shader is not None
    assert draws[1].shader is not None
    assert draws[0].shader.code != draws[1].shader.code
    found = compare(one, two)
    assert found.is_equal, "\n".join(found.lines())


def test_another_engine_and_other_choices_draw_again() -> None:
    source = looked(CUBE).jobs
    again = Capture(source, gpu=GpuOptions("interpreter", threads=1))
    assert compare_frames(looked(CUBE).frame(3), again.frame(3)).is_equal
    texture = looked(RUNS / "glmark2_texture_texture-filter_linear").jobs
    other = Capture(texture, gpu=GpuOptions(unknowns=Unknowns({"tmu_filter_weights": "7"})))
    pair = compare_frames(Capture(texture).frame(3), other.frame(3))
    assert not pair.is_equal
    assert not any(one.differences for job in pair.jobs for one in job.draws), "only the pictures differ"
    assert pair.jobs[0].pixels is not None
    assert [maker.text() for maker in pair.jobs[0].pixels.makers] == ["draw 1"]


def test_a_texture_that_another_job_has_drawn() -> None:
    """The first job draws another colour: the second one's draw is equal but for what it samples."""
    one, two = copied(), copied()
    frame = Capture(one).frame()
    (program,) = [d.shader for d in frame.draws if d.job == 1]
    assert program is not None
    events = two.frames[0].events
    place = next(n for n, e in enumerate(events) if getattr(e, "register", "") == "CT0EA")
    events.insert(place, Patched(program.uniforms, bytes.fromhex("2244aaff")))
    first, second = compare(Capture(one), Capture(two)).frames[0].jobs
    assert [d.what for d in first.draws[0].differences] == ["fragment program"]
    assert [d.kind for d in second.draws[0].differences] == ["texture"]
    assert first.pixels is not None
    assert second.pixels is not None
    assert first.pixels.count == int(second.draws[0].differences[0].b.split()[0])  # type: ignore[union-attr]


def test_jobs_that_store_all_samples() -> None:
    """The pixels of such a job are means; the job that resolves them differs in the same ones."""
    path = RUNS.parent / "vc4-conformance" / "alpha_to_coverage_4x"
    with looked_into(path) as one, looked_into(path) as two:
        frame = two.frame(1)
        shader = frame.draws[3].shader
    assert shader is not None
    place = next(n for n, e in enumerate(frame.source.events) if getattr(e, "register", "") == "CT0EA")
    frame.source.events.insert(place, Patched(shader.uniforms, struct.pack("<f", 0.625)))
    found = compare(one, Capture(two.jobs))
    first, second = (pair.jobs[0] for pair in found.frames[:2])
    (draw,) = [draw for draw in first.draws if not draw.is_equal]
    assert draw.a is not None
    assert draw.a.number == 4
    assert [(d.kind, d.b) for d in draw.differences] == [("uniform", "0.625")]
    assert [d.what for d in first.differences] == ["samples"]
    assert first.pixels is not None
    assert second.pixels is not None
    assert first.pixels.count == second.pixels.count
    assert [maker.text() for maker in first.pixels.makers] == ["draw 4"]
    assert [maker.text() for maker in second.pixels.makers] == ["before any draw"]


def test_each_pixel_belongs_to_the_draw_that_made_it() -> None:
    """Against the definition, with random pictures: equal before the draw, different after it."""
    choice = random.Random(5)
    zeros = np.zeros((4, 6), np.uint32)
    for _ in range(20):
        steps = [(n, n) for n in range(choice.randrange(2, 20))]
        pictures = np.array([[choice.randrange(2) for _ in range(24)] for _ in steps], np.uint32)
        pictures = pictures.reshape(-1, 4, 6)
        pixels = pixels_of(pictures[-1], zeros)
        if pixels is None:
            continue
        find_makers(pixels, steps, lambda step, made=pictures: (made[step[0]], zeros))  # type: ignore[misc]
        assert sum(one.count for one in pixels.makers) == pixels.count
        for maker in pixels.makers:
            after = maker.a[1] if maker.a is not None else 0
            assert maker.a is None or maker.a[0] == after
            assert pictures[after, maker.y, maker.x] == 1
            assert maker.a is None or pictures[after - 1, maker.y, maker.x] == 0


def test_sequences_are_aligned_with_as_few_gaps_as_there_can_be() -> None:
    choice = random.Random(1)
    for _ in range(300):
        one, two = ([choice.randrange(4) for _ in range(choice.randrange(12))] for _ in range(2))
        pairs = aligned((one, two))
        assert [a for a, _ in pairs if a is not None] == list(range(len(one)))
        assert [b for _, b in pairs if b is not None] == list(range(len(two)))
        longest = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
        for a, x in enumerate(one):
            for b, y in enumerate(two):
                both = longest[a][b] + 1 if x == y else 0
                longest[a + 1][b + 1] = max(both, longest[a][b + 1], longest[a + 1][b])
        equal = sum(a is not None and b is not None and one[a] == two[b] for a, b in pairs)
        assert equal >= longest[-1][-1]
    many = aligned((range(5000), range(3, 5003)))
    assert many[:3] == [(0, None), (1, None), (2, None)]
    assert len(aligned((range(3000), range(10_000, 13_000)))) == 3000


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.output


def test_the_command_line(tmp_path: Path) -> None:
    code, text = run("diff", CUBE, CUBE)
    assert (code, text) == (0, "equal: 3 frames\n")
    code, text = run("diff", f"{CUBE}@2", f"{CUBE}@3", "-o", tmp_path / "d.png")
    assert code == 1
    assert text.startswith("frame 2 of A, 3 of B: 6 of 6 draws differ, ")
    assert "draws 1-6: vertex program: uniform 0, read by instruction 3 -0.61519164 -> -0.6108808" in text
    with Image.open(tmp_path / "d.png") as image:
        red = (np.asarray(image) == (255, 40, 40)).all(axis=2)
    code, text = run("diff", f"{CUBE}@2", f"{CUBE}@3", "--json")
    table = json.loads(text)
    assert code == 1
    (job,) = table["frames"][0]["jobs"]
    assert job["pixels"]["count"] == int(red.sum())
    assert [one["a"] for one in job["draws"]] == [1, 2, 3, 4, 5, 6]
    assert run("diff", f"{CUBE}@3", "--engine", "interpreter") == (0, "equal: 1 frame\n")
    assert run("diff", f"{CUBE}@3", "--rows", "1", f"{CUBE}@2")[1].count("\n") == 4


def test_bad_input(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.vc4cap"
    damaged.write_bytes(b"PK\3\4 and nothing more")
    for pair in ((damaged, CUBE), (CUBE, damaged), (CUBE, tmp_path / "none.vc4cap")):
        code, text = run("diff", *pair)
        assert code == 2
        assert "CAP-001" in text
        assert "Traceback" not in text
    for words, sentence in (
        ((CUBE,), "nothing to compare with"),
        ((f"{CUBE}@9", CUBE), "it has no frame 9, but 1, 2, 3"),
        ((CUBE, CUBE, "-o", tmp_path / "d.txt"), "unknown picture format"),
        ((CUBE, "--unknown", "x=y"), "--unknown"),
    ):
        code, text = run("diff", *words)
        assert (code, sentence in text) == (2, True), text
    assert run("diff", CUBE, CUBE, "-o", tmp_path / "d.png")[0] == 0, "there is nothing to save"


@pytest.mark.parametrize("seed", range(4))
def test_damaged_lists_records_and_programs(seed: int) -> None:
    """Bytes of what a frame draws with are others: whatever comes of it is told."""
    choice = random.Random(seed)
    for _ in range(3):
        one, two = copied(), copied()
        draws = Capture(two).frame().draws
        areas = [(draw.address, 10) for draw in draws]
        areas += [(address, 6) for draw in draws for address, _ in draw.records]
        for draw in draws:
            assert draw.shader is not None
            areas += [(draw.shader.address, 16), (draw.shader.uniforms, 16), (draw.shader.code, 64)]
        events = two.frames[0].events
        places = [n for n, e in enumerate(events) if getattr(e, "register", "") in ("CT0EA", "CT1EA")]
        for _ in range(choice.randrange(1, 5)):
            address, size = choice.choice(areas)
            patch = Patched(address + choice.randrange(size), choice.randbytes(choice.randrange(1, 4)))
            events.insert(choice.choice(places), patch)
        found = compare(Capture(one), Capture(two))
        text = "\n".join(found.lines())
        assert text.endswith("equal: 1 frame") == found.is_equal
        json.dumps(found.as_dict())
        found.picture()
