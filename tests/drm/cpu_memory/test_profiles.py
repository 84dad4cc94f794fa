"""Profiles of processors: files with a checked form."""

import tomllib
from pathlib import Path

import pytest

from vc4lab.drm.cpu_memory.profiles import (
    FOLDER,
    NAMES,
    Attribute,
    BadProfile,
    cost_of,
    load_profile,
    parse_profile,
)

ULTRA96 = (FOLDER / "ultra96.toml").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_rate_of_the_package_names_its_source(name: str) -> None:
    profile = load_profile(name)
    rates = [*profile.read.values(), *profile.write.values(), profile.clean, profile.invalidate]
    assert all(rate.source and rate.low <= rate.rate <= rate.high for rate in rates)
    assert profile.reread == 1.0
    combined = profile.read[Attribute.WRITE_COMBINED]
    assert combined.high < profile.read[Attribute.CACHED].low


def test_time_follows_from_the_rates() -> None:
    profile = load_profile("ultra96")
    assert cost_of(profile, Attribute.CACHED, 800e6, 0).seconds == pytest.approx(1.0)
    combined = cost_of(profile, Attribute.WRITE_COMBINED, 130e6, 1192e6)
    assert combined.seconds == pytest.approx(2.0)
    twice = parse_profile(tomllib.loads(ULTRA96.replace("reread = 1", "reread = 2")), "x")
    assert cost_of(twice, Attribute.WRITE_COMBINED, 130e6, 0).seconds == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rate = 800e6", "", r"\[cached.read\]: rate is missing"),
        ("rate = 800e6", 'rate = "fast"', "is a number, not 'fast'"),
        ("rate = 800e6", "rate = nan", "nan is not from"),
        ("rate = 800e6", "rate = 0", "0 is not from"),
        ("rate = 800e6", "rate = true", "is a number, not True"),
        ("low = 105e6", "low = 205e6", "is violated"),
        ("reread = 1", "reread = 0.5", "reread: 0.5 is not from"),
        ("reread = 1", "reread = 1\ncolour = 1", "unknown key 'colour'; the keys are title"),
        ("[cached.read]", "[cached.red]", "unknown key 'red'; the keys are read, write"),
        ("[maintenance.clean]", "[maintenance.wash]", "unknown key 'wash'"),
        ('source = "assumed: as clean"', 'source = ""', "source is missing"),
        ('source = "assumed: as clean"', "source = 3", "source is missing"),
        ("reread = 1", "reread = ", "not TOML"),
        ('title = "Ultra96-V2', 'title = 3 # "', "title is a text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(old: str, new: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert old in ULTRA96
    file.write_text(ULTRA96.replace(old, new, 1))
    with pytest.raises(BadProfile, match=said):
        load_profile(file)


def test_files_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadProfile, match="not a text file"):
        load_profile(file)
    file.write_text("cached = 3\n")
    with pytest.raises(BadProfile, match="cached is a table, not 3"):
        load_profile(file)
    file.write_text("a = " + "[" * 5000)
    with pytest.raises(BadProfile, match="not TOML"):
        load_profile(file)
    with pytest.raises(FileNotFoundError):
        load_profile(tmp_path / "none.toml")
