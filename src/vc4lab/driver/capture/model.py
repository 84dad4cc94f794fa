"""A capture as objects: frames of commands, and what the commands name.

capture = Capture.open("run.vc4cap")
frame = capture.frames[0]
for draw in frame.draws:
    state = capture.state_of(draw)      # a `PipeState`
    state.blend.rt[0].rgb_src_factor
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.blocks import PIPE_PARTS, STAGE_PARTS
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.messages import ResourceCreate2
from vc4lab.mesa.state.pipe import PipeState, Shader, StageState
from vc4lab.mesa.store.resources import Box, HostResource, Resource

if TYPE_CHECKING:
    from vc4lab.jobs.model import JobsCapture

STAGES = ("vertex", "fragment")
KINDS = (*PIPE_PARTS, *STAGE_PARTS, "constants", "pipe_state", "shader_state")
"""Kinds of parts of the state; the last two name the others."""
MAX_CONSTANT_BUFFERS = 16


class CapturedResource(HostResource):
    """A buffer or texture with what it held when the first frame began.

    Attributes
    ----------
    number
        Its name in commands is `resource-` and this.
    """

    def __init__(self, asked: ResourceCreate2) -> None:
        super().__init__(asked)
        self.number = asked.handle

    @property
    def description(self) -> ResourceCreate2:
        """The description that makes an equal one."""
        return ResourceCreate2(
            self.number, self.target, self.format, self.bind, self.width, self.height, self.depth,
            self.array_size, self.last_level, self.samples, 0,
        )  # fmt: skip

    @property
    def data(self) -> bytes:
        """All levels from the largest on; in each layers, rows, bytes, without padding. Of several
        samples all of the first, then of the second, and so on.
        """
        return self.memory.tobytes()

    def fill(self, data: bytes) -> None:
        """Put such bytes in. Raises ValueError if they are not as many."""
        import numpy as np

        if len(data) != self.size:
            raise ValueError(f"{len(data)} bytes, but {self.size} are needed")
        self.memory[:] = np.frombuffer(data, np.uint8)

    def __str__(self) -> str:
        return super().__str__().replace("resource ", "resource-", 1)


def box_shape(resource: Resource, box: Box) -> tuple[int, int, int]:
    """Layers, rows of blocks and bytes of a row."""
    layout = resource.layout
    return box.depth, layout.rows(box.height), layout.row_bytes(box.width)


@dataclass
class CapturedFrame:
    """A frame: the commands of its queues, each of which ends with a halt.

    Attributes
    ----------
    number
        As `gl` counted it, from 1 on.
    picture
        The picture that was shown, as a PNG file; None: nothing was.
    lines
        The line of each command in its file.
    """

    number: int
    commands: list[c.QueueCommand] = field(default_factory=list)
    picture: bytes | None = None
    lines: list[int] = field(default_factory=list)

    @property
    def draws(self) -> list[c.Draw]:
        """Its draws."""
        return [one for one in self.commands if isinstance(one, c.Draw)]

    @property
    def file(self) -> str:
        """The file of its commands."""
        return f"frames/{self.number}/commands.txt"

    def line_of(self, place: int) -> int:
        """The line of a command by its place; 0: it was not read from a file."""
        return self.lines[place] if place < len(self.lines) else 0


@dataclass
class Capture:
    """Frames and all that they need.

    Attributes
    ----------
    program
        Which was captured.
    resources, data
        By their numbers: resources, and rows of uploads.
    parts
        Parts of the state by kind and number: Gallium's objects. A `pipe_state` has the numbers of
        its parts by their kinds, a `shader_state` the same of both stages.
    programs
        The programs for the QPU that drew it (`stored_programs.py`).
    files
        The files of the shaders in a capture that was read, by their texts.
    jobs
        The jobs that its frames became, as they were captured; None: they were not.
    """

    program: str = ""
    frames: list[CapturedFrame] = field(default_factory=list)
    resources: dict[int, CapturedResource] = field(default_factory=dict)
    data: dict[int, bytes] = field(default_factory=dict)
    parts: dict[str, dict[int, Any]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    programs: list[Any] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    jobs: JobsCapture | None = None
    _states: dict[tuple[int, int], PipeState] = field(default_factory=dict, repr=False)

    def part(self, kind: str, number: int) -> Any:
        """A part of the state; number 0: None. Raises KeyError."""
        return self.parts[kind][number] if number else None

    def state_of(self, draw: c.Draw) -> PipeState:
        """All that a draw is made with."""
        return self.state(draw.pipe_state, draw.shader_state)

    def state(self, pipe_state: int, shader_state: int) -> PipeState:
        """The state of two numbers. Raises KeyError."""
        key = pipe_state, shader_state
        known = self._states.get(key)
        if known is None:
            named = self.parts["pipe_state"][pipe_state]
            parts: dict[str, Any] = {kind: self.part(kind, one) for kind, one in named.items()}
            stages = self.parts["shader_state"][shader_state]
            parts |= {stage: self._stage(stage, stages[stage]) for stage in STAGES}
            known = self._states[key] = PipeState(**parts)
        return known

    def _stage(self, stage: str, named: dict[str, Any]) -> StageState:
        parts = {kind: self.part(kind, named[kind]) for kind in STAGE_PARTS if kind in named}
        if "shader" in parts:
            parts["shader"] = Shader(Stage[stage.upper()], parts["shader"])
        buffers = named.get("constants", ())
        constants = tuple(self.part("constants", one) or b"" for one in buffers)
        return StageState(**parts, constants=constants)

    def walk(self) -> Iterator[tuple[CapturedFrame, int, c.QueueCommand]]:
        """All commands with their frame and place."""
        for frame in self.frames:
            for place, command in enumerate(frame.commands):
                yield frame, place, command
