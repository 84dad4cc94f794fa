"""Chips as files: what a file may say, and what is said about one that is wrong."""

from pathlib import Path

import pytest
from tests.support.timing import timed
from tests.support.timing_rows import LOAD, load_setup, loop, start

from vc4lab.timing.chip import BadChip, load_chip
from vc4lab.timing.compute.topology import topology_of
from vc4lab.timing.figures import MODULES, QUEUES

LIKE = 'like = "videocore4"\n'


def read(folder: Path, text: str | bytes, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_figure_of_the_chip_has_a_source() -> None:
    chip = load_chip("videocore4")
    figures = [figure for keys in chip.figures.values() for figure in keys.values()]
    assert all(figure.source and "no source" not in figure.source for figure in figures)
    assert chip.boards == ("pi0", "pi1", "pi2", "pi3")


def test_there_is_at_most_one_fitted_figure_for_three_fitted_rows() -> None:
    """The rules of caches are fitted rows by the list of what may be fitted; but they hold exactly,
    whatever the figures are, so they are left out here.
    """
    from tests.support.frame_rows import ROWS as FRAME_ROWS
    from tests.support.timing_rows import FITTED, ROWS

    chip = load_chip("videocore4")
    named = [
        f"`{section}.{key}`"
        for section, keys in chip.figures.items()
        for key, figure in keys.items()
        if figure.fitted
    ]
    outside = 4 + 5 + 1  # GPU_FFT 2^8 to 2^11, Rot3D 1 to 3, sgemm: docs/timing.md
    rows = sum(row.group == FITTED for row in (*ROWS, *FRAME_ROWS)) + outside
    rules = 8  # which test_measurements.py holds exactly
    assert 3 * len(named) <= rows
    page = " ".join((Path(__file__).parents[2] / "docs" / "timing.md").read_text().split())
    said = f"{len(named)} figures for {rows + rules} fitted rows, of which {rules} are rules"
    assert said in page
    assert f"{rows} rows, one figure for {rows / len(named):.1f} of them" in page
    listed = page[page.index("Seven of user programs:") : page.index("Two more were fitted")]
    assert [name for name in named if name not in listed] == []
    assert listed.count("`") == 2 * len(named)


def test_a_file_says_only_what_is_different(tmp_path: Path) -> None:
    path = read(tmp_path, LIKE + "[tmu]\nper_slice = 4\n[l2]\nbytes = 65536\n")
    chip, known = load_chip(path), load_chip("videocore4")
    assert chip.name == "mine"
    assert chip.whole("tmu", "per_slice") == 4
    assert chip.whole("l2", "bytes") == 65536
    assert chip.figures["tmu"]["latency"] == known.figures["tmu"]["latency"]


def test_a_file_may_be_like_another_file(tmp_path: Path) -> None:
    read(tmp_path, LIKE + "[slices]\ncount = 1\n", "small.toml")
    chip = load_chip(read(tmp_path, 'like = "small.toml"\n[slices]\nqpus = 2\n'))
    assert (chip.whole("slices", "count"), chip.whole("slices", "qpus")) == (1, 2)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[tmus]\nper_slice = 2\n", "mine.toml:2: [tmus]", "did you mean tmu?"),
        ("[tmu]\n\nlatancy = 2\n", "mine.toml:4: [tmu] latancy", "did you mean latency?"),
        ("[tmu]\nlatency = 0\n", "mine.toml:3: [tmu] latency", "from 1 to 10000 clocks, not 0"),
        ("[tmu]\nlatency = 1e99\n", "mine.toml:3", "not so large a number"),
        ("[tmu]\nlatency = nan\n", "mine.toml:3", "not a whole number"),
        ("[tmu]\nlatency = 2.5\n", "mine.toml:3", "not a whole number"),
        ("[tmu]\nlatency = true\n", "mine.toml:3", "a number"),
        ('[tmu]\nlatency = "2"\n', "mine.toml:3", "a number"),
        ("[l2]\nbytes = 30000\n", "mine.toml:3: [l2] bytes", "such as 16384 or 32768"),
        ("[l2]\nbytes = 64\n", "videocore4.toml", "4 ways do not divide the 64 bytes"),
        ("[queues.l2_requests]\ndepth = 0\n", "mine.toml:3: [queues.l2_requests] depth", "1 to"),
        ("[queues.l3]\ndepth = 1\n", "mine.toml:2: [queues.l3]", "there is no such queue"),
        ("[queues.programs]\nreserved = 1\n", "mine.toml:3", "true or false"),
        ("[boards.pi9]\nclock = 1e9\n", "mine.toml:2: [boards.pi9] memory", "missing"),
        ("[boards.PI]\nclock = 1e9\n", "mine.toml:2", "small letters"),
        ("[tmu]\nlatency = { value = 3 }\n", "mine.toml:3", "source: a text"),
        ("[tmu]\nlatency = { value = 3, source = 'x', fit = 1 }\n", "mine.toml:3", "it has 'fit'"),
        ("[tmu]\nlatency = { source = 'x' }\n", "mine.toml:3", "the value is missing"),
        ("[tmu]\nlatency = { value = 3, source = 'x', fitted = 1 }\n", "mine.toml:3", "fitted:"),
        ("tmu = 3\n", "mine.toml:2: tmu", "no section has this key"),
        ("title = 3\n", "mine.toml:2: title", "a text"),
        ("[tmu\n", "mine.toml", "line 2"),
        ("queues = 3\n", "mine.toml:2", "section"),
        ("[queues]\nprograms = 3\n", "mine.toml", "a section"),
        ("assumed = 3\n", "mine.toml:2: assumed", "true or false"),
        ("[clusters]\ncount = 5\n", "mine.toml:3: [clusters] count", "from 0 to 4, not 5"),
        ("[cluster]\ncount = 2\n", "mine.toml:2: [cluster]", "did you mean clusters?"),
        ("[global_scheduler]\ninterval = 0\n", "mine.toml:3", "from 1 to 10000 clocks, not 0"),
        ("[global_scheduler]\nlatency = 1e7\n", "mine.toml:3", "from 1 to 10000 clocks"),
        ("[queues.commands]\ndepth = 0\n", "mine.toml:3: [queues.commands] depth", "1 to 4096"),
        ("[queues.command]\ndepth = 1\n", "mine.toml:2: [queues.command]", "mean commands?"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(BadChip) as caught:
        load_chip(read(tmp_path, LIKE + text))
    assert place in str(caught.value)
    assert words in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadChip, match="not a text file"):
        load_chip(read(tmp_path, b"\xff\xfe\x00"))


def test_a_file_that_says_too_little(tmp_path: Path) -> None:
    with pytest.raises(BadChip, match="missing; `like"):
        load_chip(read(tmp_path, "[slices]\ncount = 3\n"))


def test_files_that_are_like_each_other_in_a_circle(tmp_path: Path) -> None:
    with pytest.raises(BadChip, match="circle"):
        load_chip(read(tmp_path, 'like = "mine.toml"\n'))


def test_like_what_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(BadChip, match=r"mine\.toml:1: like: 'videocore5' cannot be read"):
        load_chip(read(tmp_path, 'like = "videocore5"\n'))


def test_a_circle_of_queues_that_cannot_move(tmp_path: Path) -> None:
    chip = load_chip(read(tmp_path, LIKE + "[queues.tmu_results]\nreserved = false\n"))
    with pytest.raises(BadChip, match=r"mine\.toml:3: .*the circle tmu -> qpu -> tmu cannot move"):
        topology_of(chip)


def test_more_modules_than_a_scheduler_moves(tmp_path: Path) -> None:
    text = "[slices]\ncount = 4\nqpus = 4\n[tmu]\nper_slice = 4\n"
    chip = load_chip(read(tmp_path, LIKE + text))
    assert sum(module.count for module in topology_of(chip).modules) <= 64


@pytest.mark.parametrize("queue", QUEUES)
def test_queues_of_depth_1_move(queue: str, tmp_path: Path) -> None:
    chip = load_chip(read(tmp_path, f"{LIKE}[queues.{queue}]\ndepth = 1\n"))
    program = start("mov r1, unif", f"ldi vr_setup, {load_setup(16):#x}") + loop(
        "mov t0s, r1\nmov t1s, r1\nnop ; nop ; ldtmu0\nnop ; nop ; ldtmu1\nadd r1, r1, r1\n" + LOAD, 12
    )
    timing = timed(program, [[7, 0x100000]], chip=chip, qpus=12)
    assert not timing.notes
    assert [qpu.instructions for qpu in timing.qpus] == [3 + 12 * 7 + 3] * 12


@pytest.mark.parametrize("section", sorted(MODULES))
def test_the_least_and_the_most_of_every_figure_moves(section: str, tmp_path: Path) -> None:
    for key, spec in MODULES[section].items():
        for value in (spec.least, spec.most):
            shown = str(bool(value)).lower() if spec.flag else f"{value:.15g}"
            text = f"{LIKE}[{section}]\n{key} = {shown}\n"
            try:
                chip = load_chip(read(tmp_path, text))
            except BadChip:  # ways that do not divide the bytes
                assert key in ("ways", "bytes")
                continue
            program = "mov r1, unif\nmov t0s, r1\nnop ; nop ; ldtmu0\nnop ; nop ; thrend\nnop\nnop"
            assert timed(program, [[0x100000]], chip=chip).clocks > 0
