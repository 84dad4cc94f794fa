"""A copy of a recorded run, for tests that change it."""

import shutil
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[2] / "data" / "vc4-jobs"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    shutil.copytree(JOBS / "tri_arm64", tmp_path / "run")
    shutil.copytree(JOBS / "blobs", tmp_path / "blobs")
    return tmp_path / "run"
