"""The digest of the model's source: which changes make stored points be computed anew."""

from pathlib import Path

import pytest

from vc4lab.timing.sweep.points import source_digest

SOURCE = '''"""What it does."""

LIMIT = 4
"""Pieces at most."""


class Module:
    """A block."""

    depth: int = 2
    """Pieces that it holds."""


def step(clock: int) -> int:
    """Goes on."""
    # comes after a pause
    return clock + LIMIT
'''


def digest(folder: Path, text: str, name: str = "step.py") -> str:
    (folder / "profile").mkdir(parents=True)
    (folder / name).write_text(text)
    (folder / "profile" / "trace.py").write_text(str(folder))
    return source_digest(folder, "profile")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("What it does.", "Does it."),
        ("Pieces at most.", "The most."),
        ('    """Pieces that it holds."""\n', ""),
        ('    """Goes on."""\n', ""),
        ("comes after a pause", "after a pause"),
        ("clock + LIMIT", "(clock  +\n            LIMIT)"),
    ],
)
def test_words_and_layout_do_not_count(old: str, new: str, tmp_path: Path) -> None:
    assert old in SOURCE
    changed = SOURCE.replace(old, new)
    assert digest(tmp_path / "a", SOURCE) == digest(tmp_path / "b", changed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 4", "LIMIT = 5"),
        ("+ LIMIT", "- LIMIT"),
        ("depth: int = 2", 'depth: str = "2"'),
        ("def step(", "def go("),
    ],
)
def test_what_it_does_counts(old: str, new: str, tmp_path: Path) -> None:
    assert old in SOURCE
    assert digest(tmp_path / "a", SOURCE) != digest(tmp_path / "b", SOURCE.replace(old, new))


def test_a_file_of_another_name_counts(tmp_path: Path) -> None:
    assert digest(tmp_path / "a", SOURCE) != digest(tmp_path / "b", SOURCE, "go.py")


def test_a_file_that_cannot_be_parsed_counts_as_it_is(tmp_path: Path) -> None:
    assert digest(tmp_path / "a", "def (") != digest(tmp_path / "b", "def ( #")
