"""Ctrl-C at any moment of the start and the end is an exit code, without Python's traceback."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MODULE = "import runpy; runpy.run_module('vc4lab', run_name='__main__')"
COMMAND = ROOT / "tools" / "vc4lab"
"""What is installed as the command."""
SCRIPT = (
    COMMAND.read_text(encoding="utf-8") if COMMAND.exists() else "from vc4lab.cli.start import run; run()"
)

BEFORE = """
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has it ignored
def interrupt(name="", *_):
    if name == {name!r}:
        os.kill(os.getpid(), signal.SIGINT)
sys.argv[0] = "vc4lab"
"""
AT_IMPORT = "sys.meta_path.insert(0, type('', (), {'find_spec': staticmethod(interrupt)}))\n"


def interrupted(before: str, start: str, *args: str, code: int = 130) -> str:
    """What the command said; its exit code is that of an interrupted one."""
    run = subprocess.run(
        [sys.executable, "-c", before + start, *args], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr
    return run.stderr


@pytest.mark.parametrize("start", [MODULE, SCRIPT], ids=["module", "script"])
@pytest.mark.parametrize(
    "name",
    ["vc4lab.cli.main", "vc4lab.optimisations", "typer.core", "typer", "vc4lab.cli.demo",
     "vc4lab.cli.session", "vc4lab.soc.machine", "llvmlite.binding"],
)  # fmt: skip
def test_while_modules_are_imported(name: str, start: str) -> None:
    before = BEFORE.format(name=name) + AT_IMPORT
    said = interrupted(before, start, "demo", "--headless", "--frames", "1")
    assert len(said.splitlines()) <= 1


def test_the_command_serves_ctrl_c_before_it_imports_anything_of_ours() -> None:
    """Also `re`, which a script of pip's for an entry point imports first, comes later."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "scripts" not in project["project"]
    assert project["tool"]["setuptools"]["script-files"] == ["tools/vc4lab"]
    assert SCRIPT.startswith("#!python\n")
    for name in ("vc4lab", "vc4lab.cli", "vc4lab.cli.start"):
        assert not interrupted(BEFORE.format(name=name) + AT_IMPORT, SCRIPT, "boards")


def test_a_signal_before_the_command_is_known_has_its_own_exit_code() -> None:
    """SIGTERM gave 130, Ctrl-C's, while the module of the commands was imported."""
    raised = """
from vc4lab import interruption
def install():
    raise interruption.Interrupted(15)
interruption.install = install
"""
    assert not interrupted("import sys" + raised, SCRIPT, "boards", code=143)


def test_where_ctrl_c_is_ignored_it_stays_so() -> None:
    """As nohup and shells start jobs in the background."""
    before = BEFORE.format(name="vc4lab.cli.main").replace("default_int_handler", "SIG_IGN")
    code = before + AT_IMPORT + "atexit.register(interrupt, 'vc4lab.cli.main')\n" + SCRIPT
    run = subprocess.run([sys.executable, "-c", code, "boards"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_after_the_work_is_done() -> None:
    before = BEFORE.format(name="") + "atexit.register(interrupt)\n"
    assert not interrupted(before, SCRIPT, "boards")
