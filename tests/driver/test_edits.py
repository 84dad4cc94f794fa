"""Unpacked captures: what is edited is drawn, what is not edited stays; mistakes are named."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.driver.small_scene import HEIGHT, WIDTH
from tests.driver.test_captures import SMALL, kept_pictures, pictures

from vc4lab.capture.errors import CaptureError
from vc4lab.driver.capture.folder import VIEWS, unpack
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.player import Player


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The small capture, unpacked."""
    unpack(open_capture(SMALL), tmp_path / "small")
    return tmp_path / "small"


TEXTURE = "data/data-1.png"
"""The texture of the first frame."""
BEFORE = kept_pictures(open_capture(SMALL))


def drawn(folder: Path, **options: bool) -> np.ndarray:
    """The first frame."""
    return pictures(open_capture(folder), **options)[0]


def one_of(folder: Path, pattern: str, text: str) -> Path:
    """The only file of a pattern that has a text."""
    found = [one for one in sorted(folder.glob(pattern)) if text in one.read_text()]
    assert len(found) == 1, found
    return found[0]


def edit(file: Path, before: str, after: str) -> int:
    """Replace the first text; its line."""
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))
    return text[: text.index(before)].count("\n") + 1


def changed(folder: Path) -> np.ndarray:
    """Which pixels of the first frame differ from the captured ones."""
    found: np.ndarray = (drawn(folder) != BEFORE[0]).any(axis=2)
    assert found.any()
    return found


def test_an_unedited_folder_draws_the_same(folder):
    for one, other in zip(pictures(open_capture(folder)), BEFORE, strict=True):
        assert (one == other).all()
    names = {one.parent.name for one in folder.rglob("*")}
    assert names >= {"frames", "state", "shaders", "programs", "data", "vertices", "constants"}


def test_a_blend_factor(folder):
    """The square of colour (1, 0.25, 0, 0.5) is added to what is there, not mixed with it."""
    file = one_of(folder, "state/blend-*.txt", "rgb_dst_factor = inv_src_alpha")
    edit(file, "rgb_dst_factor = inv_src_alpha", "rgb_dst_factor = one")
    after = drawn(folder).astype(int)
    x, y = 24, HEIGHT - 8  # on the background, inside of the blended square
    y = next(y for y in range(HEIGHT) if (BEFORE[0][y, x] != BEFORE[0][0, 0]).any())
    background = BEFORE[0][0, 0].astype(int)
    expected = np.minimum(background + np.rint(np.array([127.5, 31.9, 0])), 255)
    assert abs(after[y, x] - expected).max() <= 1
    assert not (changed(folder)[0]).any()


def test_a_vertex(folder):
    """The textured square's right edge goes to the middle."""
    file = one_of(folder, "vertices/*.csv", "1,0.9,-0.9,0.0,1.0,1.0,0.0,0.0,1.0")
    assert file.read_text().splitlines()[1] == (
        "row," + ",".join(f"IN[{number}].{one}" for number in (0, 1) for one in "xyzw")
    )
    edit(file, "1,0.9,", "1,0.0,")
    edit(file, "3,0.9,", "3,0.0,")
    found = changed(folder)
    right = int((0.9 + 1) / 2 * WIDTH)
    assert found[HEIGHT // 2 :, WIDTH * 3 // 4 : right - 1].mean() > 0.5
    assert not found[:, right + 1 :].any()


def test_an_index(folder):
    file = folder / "vertices" / "indices-1.csv"
    assert file.read_text().splitlines()[1:] == ["row,index", "0,0", "1,1", "2,3"]
    edit(file, "2,3", "2,2")
    changed(folder)


def picture(file: Path) -> Image.Image:
    """A picture of a folder, to edit."""
    with Image.open(file) as image:
        image.load()
        return image


def test_a_texel(folder):
    """One texel of the texture becomes red; others stay."""
    file = folder / TEXTURE
    image = picture(file)
    assert image.size == (8, 8)
    image.putpixel((0, 0), (255, 0, 0, 255))
    image.save(file)
    pixels = drawn(folder)[changed(folder)]
    assert (pixels == (255, 0, 0)).all()
    assert 4 < len(pixels) < WIDTH * HEIGHT / 64


def test_a_constant(folder):
    file = one_of(folder, "constants/constants-*.csv", "CONST[0],1.0,0.25,0.0,0.5")
    edit(file, "1.0,0.25,0.0,0.5", "0.0,0.0,1.0,1.0")
    assert (drawn(folder)[changed(folder)] == (0, 0, 255)).all(axis=1).mean() > 0.5


def test_a_shader(folder):
    """TGSI: the stored program is not that of the text any more."""
    file = one_of(folder, "shaders/*.tgsi", "MOV OUT[0], CONST[0]")
    edit(file, "MOV OUT[0], CONST[0]", "MOV OUT[0], CONST[0].zxyw")
    assert (drawn(folder) == drawn(folder, recompile=True)).all()
    changed(folder)


def test_an_instruction(folder):
    """QPU: the textured square's green is 0 in place of the texture's."""
    file = folder / "programs" / "program-1-fragment.qasm"
    edit(file, "mov r1.8b, ra0", "mov r1.8b, 0")
    capture = open_capture(folder)
    assert [one.edited for one in capture.programs if one.edited] == [f"programs/{file.name}"]
    found, before = pictures(capture)[0], BEFORE[0]
    assert any(one.is_used for one in capture.programs if one.edited)
    other = (found != before).any(axis=2)
    assert 0.2 < other.mean() < 0.8
    assert (found[..., 0] == before[..., 0])[other].all()
    assert (found[..., 2] == before[..., 2])[other].all()
    assert (found[..., 1] < before[..., 1])[other].all()
    assert (found[HEIGHT - 4, 4:-4, 1] == 0).all()


def test_an_instruction_of_an_edited_shader(folder):
    """The shader is compiled, and the edited program is not what was made of it."""
    edit(folder / "programs" / "program-1-fragment.qasm", "mov r1.8b, ra0", "mov r1.8b, 0")
    edit(folder / "shaders" / "shader-2.tgsi", "1: MOV OUT[0], TEMP[0]", "1: MOV OUT[0], TEMP[0].zyxw")
    with pytest.raises(CaptureError, match=r"CAP-008.*shader-2\.tgsi"):
        open_capture(folder)


def test_a_command(folder):
    """A clear's colour; a draw left out."""
    file = folder / "frames" / "1" / "commands.txt"
    edit(file, "color=[0.1, 0.1, 0.3, 1.0]", "color=[1.0, 1.0, 1.0, 1.0]")
    assert (drawn(folder)[0, 0] == 255).all()
    lines = file.read_text().splitlines()
    draws = [one for one in lines if one.startswith("draw ")]
    file.write_text("\n".join(one for one in lines if one not in draws[1:]))
    assert len(open_capture(folder).frames[0].draws) == 1


def test_state_for_one_draw_only(folder):
    """A copy under a new number, named by the state of a draw."""
    blend = one_of(folder, "state/blend-*.txt", "rgb_dst_factor = inv_src_alpha")
    copy = blend.with_name("blend-77.txt")
    copy.write_text(blend.read_text().replace("blend_enable = yes", "blend_enable = no", 1))
    states = [one for one in folder.glob("state/pipe_state-*.txt") if f"= {blend.stem}\n" in one.read_text()]
    assert len(states) == 4
    edit(states[0], f"blend = {blend.stem}", "blend = blend-77")
    pictures(open_capture(folder))


def mistake(folder: Path, file: Path, line: int, match: str) -> None:
    """The folder is refused for this line."""
    with pytest.raises(CaptureError, match=match) as caught:
        pictures(open_capture(folder))
    where = f"{folder}/{file.relative_to(folder)}"
    assert (caught.value.file, caught.value.line) == (where, line)
    assert where in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "before", "after", "match"),
    [
        ("state/blend-1.txt", "dither = no", "dither = perhaps", "CAP-006.*neither yes nor no"),
        ("state/blend-1.txt", "dither = no", "dither no", "CAP-006.*no path = value"),
        ("state/blend-1.txt", "dither = no", "ditherr = no", "CAP-006.*there is no 'ditherr'"),
        ("state/blend-1.txt", "rgb_func = add", "rgb_func = plus", "CAP-006.*add, subtract"),
        ("state/blend-1.txt", "colormask = 0xf", "colormask = 0x1f", "CAP-006.*fit"),
        ("state/blend-1.txt", "rt[0].rgb_func", "rt[99].rgb_func", "CAP-006.*at most 8"),
        ("state/viewports-1.txt", "32.0 -24.0 0.5", "32.0 -24.0", "CAP-006.*must be 3"),
        ("state/viewports-1.txt", "32.0 -24.0 0.5", "32 a 0.5", "CAP-006.*no number"),
        ("state/pipe_state-1.txt", "blend-1", "blend-one", "CAP-006.*blend- and a number"),
        ("frames/1/commands.txt", "draw mode=", "drew mode=", "CAP-006.*no command 'drew'"),
        ("frames/1/commands.txt", "mode=triangle_strip", "mode=square", "CAP-006.*triangles"),
        ("frames/1/commands.txt", "=resource-1", "=resource-99", "CAP-006.*no such"),
        ("frames/1/commands.txt", "pipe_state=pipe_state-1", "pipe_state=pipe_state-9", "no file"),
        ("constants/constants-1.csv", "1.0", "1.o", "CAP-006.*neither a number"),
        ("constants/constants-1.csv", "CONST[0]", "CONST[7]", r"CAP-006.*not CONST\[0\]"),
        ("vertices/vertices-1.csv", "0,-0.9", "0,-0.9.9", "CAP-006.*no such number"),
        ("vertices/vertices-1.csv", "2,-0.9", "7,-0.9", "CAP-006.*not row 2"),
        ("programs/program-1-fragment.qasm", "nop", "nope", "CAP-006"),
    ],
)  # fmt: skip
def test_mistakes_name_file_and_line(folder, pattern, before, after, match):
    file = folder / pattern
    mistake(folder, file, edit(file, before, after), match)


def test_missing_and_other_files(folder):
    (folder / "state" / "blend-1.txt").unlink()
    with pytest.raises(CaptureError, match=r"pipe_state.*blend-1.*there is no file"):
        open_capture(folder)


def test_a_row_too_few(folder):
    file = folder / "vertices" / "vertices-1.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:-1]))
    mistake(folder, file, len(lines) - 1, "CAP-006.*3 rows, but there must be 4")


def test_a_picture_of_another_size(folder):
    file = folder / TEXTURE
    Image.new("RGBA", (8, 9)).save(file)
    mistake(folder, file, 0, "CAP-006.*8x9.*8x8")
    file.write_bytes(b"no picture")
    mistake(folder, file, 0, "CAP-006.*no PNG")


def test_both_edited(folder):
    """A picture and the data that it was made of."""
    file = folder / TEXTURE
    Image.new("RGBA", (8, 8)).save(file)
    data = file.with_suffix(".bin")
    data.write_bytes(bytes(256))
    mistake(folder, file, 0, f"CAP-008.*{data.name}")


def test_data_edited_without_their_picture(folder):
    file = folder / TEXTURE
    file.with_suffix(".bin").write_bytes(b"\xff" * 256)
    changed(folder)


def test_views_may_be_removed(folder):
    for one in [*folder.glob("vertices/*"), *folder.glob("programs/*"), *folder.glob("data/*.png")]:
        one.unlink()
    assert (drawn(folder) == BEFORE[0]).all()
    (folder / VIEWS).unlink()
    assert (drawn(folder) == BEFORE[0]).all()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x"])
def test_views_of_a_stranger(folder, name):
    views = json.loads((folder / VIEWS).read_text())
    views["views"][0]["file"] = name
    (folder / VIEWS).write_text(json.dumps(views))
    with pytest.raises(CaptureError, match="CAP-002"):
        open_capture(folder)


def test_a_shader_that_cannot_be_compiled_is_named_with_its_file(folder):
    file = one_of(folder, "shaders/*.tgsi", "TEX ")
    line = edit(file, "TEX ", "TEXX ")
    player = Player(open_capture(folder))
    list(player.play())
    texts = {item.message for item in player.reporter.items if item.code == "GL-016"}
    assert len(texts) == 1
    assert f"{file}:{line}: fragment shader: " in texts.pop()
    assert player.screen.processor.counts.left_out == 2
