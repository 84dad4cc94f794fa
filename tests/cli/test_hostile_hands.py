"""Names that are no text, little memory, headers that lie: a sentence, never an internal error."""

import os
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.cli.memory_limit import lacks_memory, memory_sentence
from vc4lab.files import read_up_to
from vc4lab.linux.objects import BadObject, needs_of
from vc4lab.soc.boot.symbols import BadElf, read_elf

DATA = Path(__file__).parent.parent / "data"
JOBS = DATA / "vc4-jobs"
KERNEL = Path(__file__).parent.parent / "soc/kernels/framebuffer.img"
NAME = b"run\xff\xe9"


def command(*arguments: str | bytes | Path, memory: int | None = None) -> tuple[int, str]:
    """Exit code and output of the command, with a limit of address space in MiB."""

    def limit() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))

    done = subprocess.run(
        [sys.executable, "-m", "vc4lab", *map(os.fsencode, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limit, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


@pytest.fixture
def run(tmp_path: Path) -> bytes:
    """A run of jobs under a name that is not UTF-8."""
    target = os.fsencode(tmp_path) + b"/" + NAME
    source = next(path for path in sorted(JOBS.iterdir()) if (path / "job0001").is_dir())
    shutil.copytree(os.fsencode(source), target)
    shutil.copytree(JOBS / "blobs", tmp_path / "blobs")
    return target


def test_runs_whose_names_are_no_text(run: bytes, tmp_path: Path) -> None:
    results, csv, html = tmp_path / "r.jsonl", tmp_path / "t.csv", tmp_path / "t.html"
    code, output = command(
        "sweep", run, "--set", "slices.count=1,2", "--results", results, "--csv", csv,
        "--html", html, "--svg", tmp_path / "svg", "--processes", "1",
    )  # fmt: skip
    assert code == ExitCode.OK, output
    assert r"run\udcff\udce9" in csv.read_text()
    assert r"run\udcff\udce9" in html.read_text()
    assert len([*(tmp_path / "svg").iterdir()]) > 0
    code, output = command("profile", run, "--html", html, "--perfetto", tmp_path / "p.json")
    assert code == ExitCode.OK, output
    assert r"run\udcff\udce9" in html.read_text()


@pytest.mark.parametrize("memory", [200, 500, 800, 1200])
def test_little_memory_is_a_sentence(memory: int) -> None:
    for arguments in (
        ("boot", KERNEL, "--frames", "1", "--headless"),
        ("replay", JOBS / "glmark2_buffer_update-method_map"),
        ("profile", JOBS / "glmark2_buffer_update-method_map"),
    ):
        code, output = command(*arguments, memory=memory)
        assert code == ExitCode.BAD_INPUT, (arguments[0], output)
        assert f"CLI-008: more memory is needed than the {memory} MiB" in output
        assert "CLI-003" not in output


def test_profile_needs_more(run: bytes) -> None:
    code, output = command("profile", run, memory=3000)
    assert (code, "CLI-008" in output) in ((ExitCode.BAD_INPUT, True), (ExitCode.OK, False))
    assert "CLI-003" not in output


def test_what_says_that_memory_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lacks_memory(MemoryError())
    assert lacks_memory(OSError(12, "Cannot allocate memory"))
    assert lacks_memory(RuntimeError("can't start new thread"))
    error = ImportError("numpy")
    error.__cause__ = OSError("libx.so: failed to map segment from shared object")
    assert lacks_memory(error)
    library = OSError("Could not find/load shared object file 'libllvmlite.so'")
    assert not lacks_memory(library)  # without a limit it is not there
    assert "than there is" in memory_sentence()
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (800 << 20, 800 << 20))
    assert lacks_memory(library)
    assert not lacks_memory(ValueError("something"))


def test_a_short_file_takes_no_memory_for_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        assert read_up_to(file, 1 << 60) == b"0123456789"
        file.seek(2)
        assert read_up_to(file, 3) == b"234"
        assert read_up_to(file, 1 << 60) == b"56789"
        assert read_up_to(file, 5) == b""
    with open("/proc/self/status", "rb") as status:  # says that it has no bytes
        assert len(read_up_to(status, 1 << 60)) > 100


HUGE = (1 << 64) - 1, 1 << 63, (1 << 62) + 7


@pytest.mark.parametrize("at", HUGE)
@pytest.mark.parametrize("place", [0x20, 0x28])
def test_headers_at_places_that_no_file_has(tmp_path: Path, at: int, place: int) -> None:
    head = bytearray(64)
    head[:8] = b"\x7fELF\2\1\1\0"
    struct.pack_into("<Q", head, place, at)
    struct.pack_into("<4H", head, 0x36, 56, 3, 64, 3)
    with pytest.raises(BadElf, match="truncated"):
        read_elf(bytes(head))
    path = tmp_path / "kernel.elf"
    path.write_bytes(bytes(head))
    if place == 0x20:
        with pytest.raises(BadObject, match="program headers"):
            needs_of(path)
    words = ["boot", str(KERNEL), "--frames", "1", "--headless", "--symbols", str(path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == ExitCode.BAD_INPUT
    assert "cannot be used" in done.output
