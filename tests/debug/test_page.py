"""The session that docs/debug.md writes down is what comes out; its configurations are JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vc4lab.cli.main import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "debug.md").read_text()
PROMPT = "(vc4lab) "


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.M | re.S)
    return [block for kind, block in found if kind == language]


def test_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks are one session, with what it prints after each command."""
    monkeypatch.chdir(ROOT)
    lines = [line for block in blocks("") for line in block.splitlines()]
    assert lines[0].startswith("vc4lab debug ")
    commands = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    printed = [line for line in lines[1:] if not line.startswith(PROMPT)]
    assert len(commands) > 8
    arguments = shlex.split(lines[0])[1:]
    result = CliRunner().invoke(app, arguments, input="\n".join(commands) + "\n")
    assert result.exit_code == 0
    assert result.output.splitlines() == printed


def test_the_shader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of a captured frame's shader."""
    monkeypatch.chdir(ROOT)
    (block,) = (one for one in blocks("console") if one.startswith("$ vc4lab debug tests/data"))
    first, *lines = block.splitlines()
    commands = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    printed = [line for line in lines if not line.startswith(PROMPT)]
    result = CliRunner().invoke(app, shlex.split(first)[2:], input="\n".join(commands) + "\n")
    assert result.exit_code == 0
    assert result.output.splitlines() == printed


def test_the_configurations() -> None:
    found = [json.loads(block) for block in blocks("json")]
    (debugger,) = found[0]["contributes"]["debuggers"]
    launch, shader = found[1]["configurations"]
    assert set(shader) == {"type", "request", "name", "capture", "pixel", "stopOnEntry"}
    assert (ROOT / shader["capture"].removeprefix("${workspaceFolder}/")).is_dir()
    assert launch["type"] == debugger["type"]
    assert [debugger["runtime"], *debugger["args"]] == ["vc4lab", "debug", "--dap", "stdio"]
    assert (ROOT / launch["program"].removeprefix("${workspaceFolder}/")).is_file()
