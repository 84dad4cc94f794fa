"""`vc4lab replay --tiles`: what the tiles of a job took, as a picture and as a table."""

import csv
from io import StringIO
from pathlib import Path

import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from vc4lab.cli.groups import spread
from vc4lab.cli.replay import replay
from vc4lab.v3d.events import FrameDrawn, TileDrawn
from vc4lab.v3d.state.tile_context import DETAILED_COUNTERS
from vc4lab.viewer.heat_map import LEGEND, STOPS, colour, heat_map, short, work_of_tiles

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"


def frame(*tiles: tuple[int, int, int], size: tuple[int, int] = (40, 32)) -> FrameDrawn:
    """Tiles of 16 x 16 pixels with their clocks."""
    drawn = tuple(TileDrawn(x, y, clocks, {}) for x, y, clocks in tiles)
    return FrameDrawn(0x1000, *size, 16, 16, drawn)


def command(*arguments: object) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(spread(replay))
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    return result.exit_code, result.output


def test_colours_go_from_dark_to_bright() -> None:
    assert colour(0.0) == colour(-1.0) == STOPS[0]
    assert colour(1.0) == colour(7.0) == STOPS[-1]
    brightness = [0.3 * r + 0.6 * g + 0.1 * b for r, g, b in (colour(n / 50) for n in range(51))]
    assert brightness == sorted(brightness)


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0"), (999, "999"), (1000, "1.0k"), (12345, "12k"), (3_400_000, "3.4M")]
)
def test_short_numbers(amount: int, text: str) -> None:
    assert short(amount) == text


def test_a_picture_of_tiles() -> None:
    parts = [frame((0, 0, 10), (16, 0, 20)), frame((16, 0, 20), (32, 16, 0))]
    assert work_of_tiles(parts) == {(0, 0): 10, (16, 0): 40, (32, 16): 0}
    image = heat_map("job", parts)
    assert image.size == (40, 32 + LEGEND)
    assert image.getpixel((8, 8)) == colour(0.25)
    assert image.getpixel((31, 15)) == colour(1.0)
    assert image.getpixel((15, 15)) == colour(0.25)
    assert image.getpixel((16, 0)) == colour(1.0)
    assert image.getpixel((32, 15)) == image.getpixel((31, 16)) == STOPS[0]
    assert image.getpixel((39, 31)) == image.getpixel((2, 30)) == STOPS[0]


def test_the_picture_below_shows_through() -> None:
    tiles = frame((0, 0, 1))
    grey = heat_map("job", [tiles], Image.new("RGB", (40, 32), (255, 255, 255)))
    assert min(grey.getpixel((30, 30))) > max(STOPS[0][:2])  # type: ignore[type-var]
    other = heat_map("job", [tiles], Image.new("RGB", (41, 32), (255, 255, 255)))
    assert other.getpixel((30, 30)) == STOPS[0], "a picture of another size is not this frame's"


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (1 << 16, 3)])
def test_odd_sizes(size: tuple[int, int]) -> None:
    image = heat_map("job", [frame((0, 0, 0), size=size)])
    assert image.width <= 1 << 12


@pytest.mark.parametrize("width", [16, 40, 64, 128, 200, 260, 400, 640])
def test_the_caption_is_never_cut_off(width: int) -> None:
    image = heat_map("job0001", [frame((0, 0, 5868), size=(width, 32))])
    caption = image.crop((max(1, min(120, width // 3)) + 5, 32, width, 32 + LEGEND))
    columns = [caption.crop((x, 0, x + 1, LEGEND)).getbbox() for x in range(caption.width)]
    assert columns[-1] is None, "a letter at the edge"
    assert any(columns) == (width >= 64)


def test_the_command_writes_a_picture(tmp_path: Path) -> None:
    target = tmp_path / "new" / "tiles.png"
    code, output = command(JOBS / "kmscube_smooth", "--tiles", target)
    assert code == 0, output
    image = Image.open(target).convert("RGB")
    assert image.size == (640, 480 + LEGEND)
    corner, middle = (sum(image.getpixel(at)) for at in ((40, 50), (300, 250)))  # type: ignore[arg-type]
    assert middle > corner + 100, "the cube is in the middle"


def test_the_command_writes_a_table(tmp_path: Path) -> None:
    target = tmp_path / "tiles.csv"
    for counters in ([], ["--counters"]):
        code, output = command(JOBS / "kmscube_smooth", "--tiles", target, *counters)
        assert code == 0, output
        rows = list(csv.DictReader(StringIO(target.read_text())))
        assert len(rows) == 3 * 80, "three jobs of 10 x 8 tiles"
        assert {row["job"] for row in rows} == {"job0001", "job0002", "job0003"}
        assert len({(row["x"], row["y"]) for row in rows}) == 80
        assert all((name in rows[0]) == bool(counters) for name in DETAILED_COUNTERS)
        assert sum(int(row["quads_valid"]) for row in rows) > 10000
    code, output = command(JOBS / "kmscube_smooth", "--tiles", target, "--job", 2)
    assert {row["job"] for row in csv.DictReader(StringIO(target.read_text()))} == {"job0002"}


def test_no_tile_no_picture(tmp_path: Path) -> None:
    """A run whose jobs are not whole: the exit code says so, and a table is empty."""
    (tmp_path / "run" / "job0001").mkdir(parents=True)
    code, _ = command(tmp_path / "run", "--tiles", tmp_path / "x.csv")
    assert code == 2
