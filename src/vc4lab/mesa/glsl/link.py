"""Programs in GLSL → their shaders in TGSI, by the Mesa that is installed.

    with_mesa("es", [(vertex, fragment)])[0].fragment

Mesa compiles them in a process of its own (`client.py`), as `vc4lab gl` starts programs; its driver
sends the shaders of each program that could be linked. Nothing is drawn.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vc4lab.diagnostics import Reporter
from vc4lab.mesa.events import CommandReceived
from vc4lab.mesa.glsl.client import number_of
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.command import CreateObject
from vc4lab.mesa.protocol.objects import ShaderPart
from vc4lab.mesa.protocol.work_commands import Clear
from vc4lab.mesa.server.program import TMP, PrivateTmp, Program
from vc4lab.mesa.server.server import Server
from vc4lab.mesa.state.context import ShaderTexts
from vc4lab.mesa.store.software import SoftwareScreen

CLIENT = Path(__file__).with_name("client.py")
JOB, ANSWER = "job.json", "answer.json"
CURE = "Debian's packages libegl1, libegl-mesa0 and libgl1-mesa-dri have it: docs/gl.md"


class NoMesa(Exception):  # noqa: N818 - a fact about the host
    """No Mesa could be started here; the text says why, and what helps."""


class Sources(NamedTuple):
    """A program in GLSL."""

    vertex: str
    fragment: str


@dataclass(frozen=True)
class Linked:
    """The result of linking a program.

    Attributes
    ----------
    vertex, fragment
        TGSI text; "" if Mesa did not link it.
    logs
        Its info logs by "vertex", "fragment" and "link".
    is_linked
        Whether there is a program.
    mesa
        As GL_VERSION says it.
    """

    vertex: str = ""
    fragment: str = ""
    logs: dict[str, str] = field(default_factory=dict)
    is_linked: bool = False
    mesa: str = ""


class _Shaders:
    """The shaders that come in the stream, program by program."""

    def __init__(self) -> None:
        self._texts = ShaderTexts()
        self._open: dict[Stage, str] = {}
        self.programs: dict[int, dict[Stage, str]] = {}

    def take(self, event: CommandReceived) -> None:
        """A command of the client."""
        command = event.command
        if isinstance(command, CreateObject) and isinstance(command.state, ShaderPart):
            whole = self._texts.add(command.handle, command.state)
            if whole is not None:
                self._open[whole.stage] = whole.text
        elif isinstance(command, Clear):
            red, green, *_ = command.color
            self.programs[number_of(red, green)] = self._open
            self._open = {}


def with_mesa(api: str, programs: Sequence[Sources]) -> list[Linked]:
    """Link programs. Raises NoMesa.

    api: "es": OpenGL ES 2.0 (GLSL ES 1.00), "gl": desktop OpenGL (GLSL 1.10, 1.20).
    """
    from vc4lab.mesa.server.program import NotPossible

    try:
        with PrivateTmp() as tmp:
            return _linked(tmp, api, programs)
    except NotPossible as reason:
        raise NoMesa(f"GL-013: {reason}; see vc4lab explain GL-013") from None
    except OSError as error:
        raise NoMesa(f"Mesa's process could not be started: {error.strerror or error}") from None


def _linked(tmp: PrivateTmp, api: str, programs: Sequence[Sources]) -> list[Linked]:
    reporter, shaders = Reporter(), _Shaders()
    job = {"api": api, "programs": [list(one) for one in programs]}
    (tmp.path / JOB).write_text(json.dumps(job), encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(CLIENT), str(TMP / JOB), str(TMP / ANSWER)]
    with Server(tmp.socket, SoftwareScreen(reporter), reporter) as server:
        subscribed = server.listeners.command.subscribe(shaders.take)
        with subscribed, Program(command, tmp.path, os.environ) as process:
            server.watch(process.descriptor, server.end)
            server.run()
            code = process.wait()
        connections = server.connections
    rows = _answers(tmp.path / ANSWER)
    if not rows or "failed" in rows[0]:
        step = rows[0]["failed"] if rows else f"its process ended with code {code}"
        raise NoMesa(f"Mesa's OpenGL cannot be used here ({step}). {CURE}")
    if not connections:
        raise NoMesa(f"GL-011: this OpenGL ({rows[0]['mesa']}) has no driver virpipe. {CURE}")
    if len(rows) <= len(programs):
        place = f"at program {len(rows)} of {len(programs)}"
        raise NoMesa(f"Mesa's process ended with code {code} {place}: the shader takes too much of it")
    return [_result(row, shaders.programs.get(n, {}), rows[0]["mesa"]) for n, row in enumerate(rows[1:])]


def _result(row: dict[str, Any], found: dict[Stage, str], mesa: str) -> Linked:
    vertex, fragment = found.get(Stage.VERTEX, ""), found.get(Stage.FRAGMENT, "")
    return Linked(vertex, fragment, row["logs"], row["linked"], mesa)


def _answers(path: Path) -> list[dict[str, Any]]:
    """The lines that are complete."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError:
        return []
    return [json.loads(line) for line in lines[:-1]]
