"""`vc4lab lint`: findings with their lines, as text, JSON and SARIF; the kernel's rules; cures."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.main import app
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.qpu.lint.lint import lint

CLOSE = "mov ra1, unif\nadd r0, ra1, 1\nmov recip, r0\nmov r1, r4\nnop; thrend\nnop\nnop\n"
DELAY_SLOT = "brr -, 8\nmov ra1, unif\nmov r0, ra1\nnop\nnop; thrend\nnop\nnop\nnop\n"


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["lint", *map(str, arguments)])
    return done.exit_code, done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "close.qasm"
    path.write_text(CLOSE)
    return path


def test_text(source: Path) -> None:
    code, text = run(source)
    assert code == 0
    assert [line.partition(": ")[2][:16] for line in text.splitlines()] == [
        "warning QPU-101:", "warning QPU-102:",
    ]  # fmt: skip
    assert f"{source}:2: " in text


def test_json(source: Path) -> None:
    code, text = run(source, "--json")
    found = json.loads(text)
    assert (code, [(item["line"], item["code"]) for item in found]) == (
        0, [(2, "QPU-101"), (4, "QPU-102")],
    )  # fmt: skip


def test_sarif(source: Path) -> None:
    log = json.loads(run(source, "--sarif")[1])
    (one,) = log["runs"]
    assert [rule["id"] for rule in one["tool"]["driver"]["rules"]] == ["QPU-101", "QPU-102"]
    place = one["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == 2
    assert run(source, "--sarif", "--json")[0] == 2


def test_rules_of_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "compute.qasm"
    path.write_text("mov vw_addr, unif\nnop; thrend\nnop\nnop\n")
    assert run(path) == (0, "")
    code, text = run(path, "--profile", "linux")
    assert code == 7
    assert "error DRM-" in text


def test_cures(source: Path) -> None:
    assert run(source, "--fix") == (0, "")
    assert source.read_text().splitlines()[1] == "nop  # QPU-101"
    assert not lint(assemble_source(source.read_text()).words)
    source.write_text(DELAY_SLOT)
    assert "QPU-101" in run(source, "--fix")[1]
    assert source.read_text() == DELAY_SLOT  # three delay slots there have to be


def test_words(tmp_path: Path) -> None:
    path = tmp_path / "close.bin"
    path.write_bytes(assemble_source(CLOSE).bytes)
    assert "close.bin: 0x8: warning QPU-101" in run(path)[1]
    path.write_bytes(b"\0" * 9)
    assert run(path)[0] == 2
