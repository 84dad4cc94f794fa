"""Changes of a chip's figures: what `--set` understands, and what is said about the rest."""

import pytest

from vc4lab.timing.changes import changed, grid, read_setting, text_of
from vc4lab.timing.chip import BadChip, load_chip

CHIP = load_chip("videocore4")


@pytest.mark.parametrize(
    ("text", "figure", "values"),
    [
        ("slices.count=1..4", "slices.count", (1, 2, 3, 4)),
        ("slices=1..4", "slices.count", (1, 2, 3, 4)),
        ("l2.bytes=64k,128k,256k", "l2.bytes", (65536, 131072, 262144)),
        ("l2.size=64K,128KiB", "l2.bytes", (65536, 131072)),
        ("l2.bytes=16k..128k", "l2.bytes", (16384, 32768, 65536, 131072)),
        ("l2.bytes=16k..256k*4", "l2.bytes", (16384, 65536, 262144)),
        ("sdram.latency=10..40:10", "sdram.latency", (10, 20, 30, 40)),
        ("sdram.bytes_per_clock=0.5,8", "sdram.bytes_per_clock", (0.5, 8)),
        ("queues.tmu_requests=4,8,8", "queues.tmu_requests.depth", (4, 8)),
        ("queues.tmu_requests.depth=4", "queues.tmu_requests.depth", (4,)),
        ("queues.l2_requests.reserved=true,false", "queues.l2_requests.reserved", (True, False)),
        ("boards.pi3.memory=1e9..4e9:1e9", "boards.pi3.memory", (1e9, 2e9, 3e9, 4e9)),
    ],
)
def test_values(text: str, figure: str, values: tuple[float, ...]) -> None:
    setting = read_setting(text, CHIP)
    assert (setting.name, setting.values) == (figure, values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slices.count", "write SECTION.KEY=VALUES"),
        ("=4", "write SECTION.KEY=VALUES"),
        ("slice.count=1", "did you mean slices?"),
        ("tmu.latancy=1", "did you mean latency?"),
        ("nothing=1", "there is no such section"),
        ("slices.count=1..9", "slices of QPUs: from 1 to 4, not 5"),
        ("l2.bytes=100", "a power of two, such as 64 or 128, not 100"),
        ("l2.bytes=many", "'many' is no value"),
        ("l2.bytes=", "'' is no value"),
        ("slices.count=4..1", "ends before it begins"),
        ("slices.count=1..4:0", "never comes to its end"),
        ("l2.bytes=64..128*1", "never comes to its end"),
        ("l2.bytes=0..128", "never comes to its end"),
        ("slices.count=1.5", "1.5 is not a whole number"),
        ("sdram.latency=1..1e9", "more than 4096 values"),
        ("sdram.latency=1..1e9:1e-9", "'1e-9' is no value"),
        ("queues.tmu_requests.reserved=yes", "'yes': true or false"),
        ("boards.pi9.clock=1e9", "there is no such section"),
        ("slices.count=" + "9" * 400, "'999"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(BadChip) as error:
        read_setting(text, CHIP)
    assert words in str(error.value)
    assert str(error.value).startswith("--set ")


def test_a_grid_has_every_combination() -> None:
    settings = [read_setting(text, CHIP) for text in ("slices=1,2", "l2.bytes=32k,64k,128k")]
    points = list(grid(settings))
    assert len(points) == 6
    assert text_of(points[1]) == "slices.count=1, l2.bytes=65536"
    chip = changed(CHIP, points[-1])
    assert (chip.whole("slices", "count"), chip.whole("l2", "bytes")) == (2, 131072)
    assert CHIP.whole("slices", "count") == 3


def test_a_grid_that_is_too_large_or_double_is_refused() -> None:
    many = [read_setting(f"{name}=1..4000", CHIP) for name in ("sdram.latency", "l2.latency")]
    with pytest.raises(BadChip, match="a grid has 65536 at most"):
        list(grid(many))
    with pytest.raises(BadChip, match="given twice"):
        list(grid([many[0], many[0]]))


def test_figures_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(BadChip, match="do not divide"):
        changed(CHIP, {("l2", "bytes"): 64, ("l2", "ways"): 4}, "--set")
