"""A table of causes for tests of the conformance tools."""

from pathlib import Path

from benchmarks._conformance.chip import Causes


def causes(tmp_path: Path, text: str = "") -> Causes:
    path = tmp_path / "causes.toml"
    path.write_text(text)
    return Causes(path)
