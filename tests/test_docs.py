"""What the documentation says can be done: its Python runs, its commands have these options."""

import __future__

import linecache
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
import typer
from tests.support.host_tools import need
from tests.support.supervised import need_supervisor
from typer.testing import CliRunner

from vc4lab.cli.main import app
from vc4lab.drm.setup.places import find_brought
from vc4lab.qpu.text.mnemonics import ADD_OPS, MUL_OPS

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(r"^ *vc4lab (\w+ .*?)(?:\s+#.*)?$", re.M)
NOT_RUN = ("drm ", "gl ", "linux ", "view ")
"""They start other programs or systems, which need not be here, or serve until a signal: only their options
are read."""


def blocks(page: Path, language: str) -> list[str]:
    """Blocks of code between fences; indented ones count as a shell's."""
    text = page.read_text(encoding="utf-8")
    found = [block for kind, block in FENCED.findall(text) if kind == language]
    return found if language else [*found, "\n".join(re.findall(r"^    \S.*", text, re.M))]


PYTHON = [
    pytest.param(block, id=f"{page.stem}{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
]
LINES = {
    line: f"{page.stem}: {line[:60]}"
    for page in PAGES
    for block in blocks(page, "")
    for line in COMMAND.findall(block)
    if "…" not in line
}
COMMANDS = [pytest.param(line, id=name) for line, name in LINES.items() if not line.startswith(NOT_RUN)]


@pytest.fixture(autouse=True)
def _checkout(tmp_path, monkeypatch):
    """A folder with what the pages speak of: the checkout's folders, an SD card, a capture."""
    for name in ("examples", "tests", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "sdcard").symlink_to(ROOT / "examples" / "naan" / "sdcard")
    (tmp_path / "run.vc4cap").symlink_to(ROOT / "tests" / "data" / "captures" / "small.vc4cap")
    for name in ("naan.vc4cap", "tri.vc4cap"):  # copies: commands write files of these names
        shutil.copyfile(ROOT / "tests" / "data" / "captures" / "tri.vc4cap", tmp_path / name)
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_test():
    assert len(PYTHON) >= 6
    assert len(COMMANDS) >= 12
    assert len(LINES) >= len(COMMANDS) + 10


@pytest.mark.parametrize("block", PYTHON)
def test_python(block, monkeypatch):
    """Each block stands for itself, imports included."""
    if "kmscube" in block:
        need_supervisor()
        need("kmscube")
    if "Linux.booted" in block and find_brought() is None:
        pytest.skip("needs Debian's kernel: vc4lab linux --setup")
    block = block.replace("1234)", "0)")  # any free port
    lines = block.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "docs", (len(block), None, lines, "docs"))  # kernels need theirs
    code = compile(block, "docs", "exec", __future__.annotations.compiler_flag)  # as in all modules of src
    exec(code, {"__name__": "docs"})


@pytest.mark.parametrize("line", COMMANDS)
def test_commands(line):
    """The options exist; what takes long, or a second program, is not run."""
    words = shlex.split(line)
    if words[0] == "disasm":
        CliRunner().invoke(app, ["asm", "examples/triangle/shader.qasm", "-o", words[1]])
    if words[:2] == ["replay", "frames"]:
        CliRunner().invoke(app, ["unpack", "run.vc4cap", "frames"])
    if words[:2] == ["pack", "frames"]:
        CliRunner().invoke(app, ["unpack", "tri.vc4cap", "frames"])
    if words[0] == "boot" and "--frames" not in words:
        words += ["--frames", "1"]
    if "--gdb" in words:
        words += ["--no-gdb-wait"]
        words[words.index("--gdb") + 1] = "0"
    if "--audio" in words:
        words += ["--seconds", "0.01"]
    result = CliRunner().invoke(app, words)
    assert "Usage:" not in result.output, result.output
    assert result.exit_code in ((0, 3) if words[0] == "boot" else (0,)), result.output


def test_options_of_commands_that_start_programs(tmp_path, monkeypatch):
    """They are read as the command line is; what they name of the user's is made up."""
    for name in ("program", "sdcard.img", "guest"):
        (tmp_path / name).write_bytes(b"")
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    context, wrong = click.Context(group), {}
    for line in LINES:
        if line.startswith(NOT_RUN):
            name, *words = shlex.split(line)
            try:
                command = group.get_command(context, name)
                assert command is not None
                command.make_context(name, words)
            except click.ClickException as error:
                wrong[line] = error.format_message()
    assert not wrong


NAMING = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / name for name in ("architecture.md", "extending.md")),
    *sorted((ROOT / "src").rglob("README.md")),
]
"""Pages that lead through the sources."""
A_FILE = re.compile(r"(?<![\w/.-])(?:[\w.*-]+/)*[\w*]+\.py\b")
A_FOLDER = re.compile(r"`((?:[\w.-]+/)+)`")


@pytest.mark.parametrize("page", NAMING, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_folders_that_a_page_names_exist(page):
    """From the page's folder, from src/vc4lab or the checkout; a file also below its README."""
    text = page.read_text(encoding="utf-8")
    names = {*A_FILE.findall(text), *A_FOLDER.findall(text)}
    sources = ROOT / "src" / "vc4lab"
    below = page.parent if sources in page.parents else sources
    paths = [path.as_posix() for path in below.rglob("*.py")]
    missing = {
        name
        for name in names
        if not (page.parent / name).exists()
        and not any(any(start.glob(name)) for start in (page.parent, sources, ROOT))
        and not any(path.endswith("/" + name) for path in paths)
    }
    assert not missing
    assert len(names) >= 3 or page.name == "CONTRIBUTING.md"


@pytest.mark.parametrize(
    "page", [page for page in NAMING if page.name == "README.md"], ids=lambda page: page.parent.name
)
def test_a_readme_has_a_line_for_each_file(page):
    """Names with .py; in drawings and in the first column of a table also without."""
    text = page.read_text(encoding="utf-8")
    plain = [*(block for _, block in FENCED.findall(text)), *re.findall(r"^\| ([\w, ]+) \|", text, re.M)]
    named = {*re.findall(r"(\w+)\.py\b", text), *re.findall(r"\w+", " ".join(plain)), "__init__"}
    files = page.parent.rglob("*.py")
    own = (file for file in files if _readme_of(file) == page)
    assert not [file for file in own if file.stem not in named]


def _readme_of(file: Path) -> Path:
    """The page of the file's folder, or of the next one above it."""
    return next(folder / "README.md" for folder in file.parents if (folder / "README.md").exists())


def test_operations_of_the_assembler_are_those_of_its_page():
    text = (ROOT / "docs" / "qpu-assembly.md").read_text()
    rows = dict(re.findall(r"^\| (add|mul) \| `([^`]+)` \|$", text, re.M))
    named = {name for name, op in ADD_OPS.items() if not op.is_reserved}
    assert sorted(rows["add"].split()) == sorted(named)
    assert sorted(rows["mul"].split()) == sorted(MUL_OPS)
