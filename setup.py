"""Puts the examples into wheels, as `vc4lab/data/examples`; all else is in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SOURCES = {".S", ".c", ".h", ".inc", ".ipynb", ".ld", ".mk", ".md", ".py", ".qasm", ".txt", ".img", ""}
"""Endings of what belongs to an example; the rest was made by building one."""


class BuildWithExamples(build_py):
    """In an editable installation the examples are where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "vc4lab" / "data" / "examples"
        for source in sorted((ROOT / "examples").rglob("*")):
            if source.is_file() and source.suffix in SOURCES:
                place = target / source.relative_to(ROOT / "examples")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, place)


setup(cmdclass={"build_py": BuildWithExamples})
