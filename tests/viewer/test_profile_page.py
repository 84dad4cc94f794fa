"""Reports in one file: what is in them, and that nothing of a run's names gets into the markup."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console
from tests.support.frame_timings import frame_timing

from vc4lab.timing.profile.result import FrameProfile, Hint, Profile, WhatIf, shares_of
from vc4lab.timing.profile.timeline import Timeline
from vc4lab.timing.result import BoardTime
from vc4lab.viewer import profile_page as pages
from vc4lab.viewer.profile_page import profile_page
from vc4lab.viewer.profile_tables import print_profile
from vc4lab.viewer.svg_plots import Bar, Series, alone, bars, line_plot, nice, number_text, strips

EVIL = '"><script>alert(1)</script>&'
VOID = {"meta", "rect", "line", "circle", "polyline", "path", "br"}


def profile(name: str = "job0000", frames: int = 1) -> Profile:
    timing = frame_timing(1000, queue=name)
    frame = FrameProfile(
        name, 640, 480, timing, (BoardTime("pi3", 300e6, 1000, 1 / 300),), shares_of(timing),
        {"quads": 3}, (WhatIf("qpu", "qpu.slot=1", 625, 1.6),),
        (Hint("PERF-001", f"a raster texture {name}", 0, 500),),
        Timeline((500, 1000), {"qpu": (0.5, 1.0), name: (0.0, 0.1)}, {"vectors": (1.0, 2.0)}),
    )  # fmt: skip
    return Profile(name, "videocore4", "pi3", 300e6, tuple(replace(frame) for _ in range(frames)),
                   (Hint("PERF-003", name),))  # fmt: skip


class Checker(HTMLParser):
    """Collects tags and checks that they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["job0000", EVIL])
def test_the_page_is_whole_and_loads_nothing(name: str) -> None:
    text = profile_page(profile(name))
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert {"svg", "table", "h2"} <= checker.seen
    assert "script" not in checker.seen
    assert not checker.links
    assert "PERF-001" in text
    assert "1,000 clocks" in text


def test_plots_are_xml() -> None:
    plots = [
        bars([Bar(EVIL, (1, 2, 3), EVIL, EVIL)] * 100, legend=("a", EVIL)),
        line_plot([Series(EVIL, ((1, 1), (2, 4), (64, 2)))] * 20, EVIL, EVIL),
        strips([1, 2], [(EVIL, (0.5, 7.0))], 2, EVIL, [(EVIL, 0, 1)]),
        line_plot([Series("one", ((3, 1),))], "x", "y"),
        bars([]),
    ]
    for plot in plots:
        root = ElementTree.fromstring(alone(plot))
        assert root.tag.endswith("svg")
        assert "nan" not in plot
    assert line_plot([], "x", "y") == ""


def test_numbers_of_axes() -> None:
    assert [nice(value) for value in (0, 0.9, 1, 3.3, 19, 8.1)] == [1, 1, 1, 4, 20, 10]
    assert [number_text(v) for v in (65536, 1 << 20, 1000, 1.5)] == ["64k", "1M", "1000", "1.5"]


def test_long_runs_have_short_pages() -> None:
    long = profile_page(profile(frames=500))
    assert long.count("<h2>") <= pages.MAX_FRAMES + 1
    assert len(long) < 2_000_000


def test_the_tables_in_a_terminal() -> None:
    out = StringIO()
    print_profile(profile("[red]job[/red]"), console=Console(file=out, width=120))
    text = out.getvalue()
    assert "bounded by qpu" in text
    assert "1.60 times as fast" in text
    assert "qpu x12" in text
    assert "PERF-001 draw 0: a raster texture" in text
    assert "`nop ; nop ; ldtmu0`: TMU result 500" in text


def test_frames_without_draws_or_samples() -> None:
    one = profile().frames[0]
    bare = replace(one, timing=frame_timing(0, draws=0), what_if=(), hints=(), timeline=None)
    for frames in ((), (bare,)):
        found = replace(profile(), frames=frames, hints=())
        assert "<h2>Frames</h2>" in profile_page(found)
        print_profile(found, console=Console(file=StringIO()))
