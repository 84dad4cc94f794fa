"""Draws a capture: its resources in GPU memory, its queues through the command processor.

player = Player(open_capture("run.vc4cap"))
for number, image in player.pictures(): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vc4lab.capture.errors import CaptureError
from vc4lab.diagnostics import Reporter
from vc4lab.driver.capture.model import box_shape
from vc4lab.driver.commands import commands as c
from vc4lab.driver.gpu.memory import GpuResource, OutOfMemory
from vc4lab.driver.pictures import Snapshot
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.driver.stored_programs import named_compiler, stored_compiler
from vc4lab.mesa.store.blits import copy_content
from vc4lab.mesa.store.resources import Box, Refused

if TYPE_CHECKING:
    from vc4lab.driver.capture.model import Capture, CapturedFrame
    from vc4lab.driver.draws.programs import Compiler
    from vc4lab.options import GpuOptions


class Player:
    """A V3D with a capture's resources.

    Parameters
    ----------
    recompile
        Compile all shaders anew; otherwise the stored programs are used where shader and state are
        as they were.

    Raises CaptureError if the resources do not fit into GPU memory.

    Attributes
    ----------
    screen
        Its `listeners` see what is done.
    """

    def __init__(
        self,
        capture: Capture,
        *,
        reporter: Reporter | None = None,
        gpu: GpuOptions | None = None,
        recompile: bool = False,
    ) -> None:
        self.capture = capture
        self.reporter = reporter or Reporter()
        compiler: Compiler = named_compiler(capture, mesa_compiler())
        if not recompile:
            compiler = stored_compiler(capture, compiler)
        self.screen = VideoCoreScreen(self.reporter, compiler, gpu)
        self._resources: dict[int, GpuResource] = {}
        try:
            for number, one in capture.resources.items():
                made = self.screen.create_numbered(one.description, number)
                self._resources[number] = made
                if one.memory.any():
                    copy_content(made, one)
        except Refused as reason:
            raise CaptureError("CAP-007", reason.text) from None

    def play(self) -> Iterator[tuple[CapturedFrame, Snapshot | None]]:
        """Draw frame after frame: each with its picture. Raises CaptureError, StrictStop."""
        for frame in self.capture.frames:
            shown: list[Snapshot] = []
            self.screen.processor.counts.begin(frame.number)
            with self.screen.listeners.frame.subscribe(
                lambda event, shown=shown: shown.append(Snapshot(event.picture))  # type: ignore[misc]
            ):
                self._frame(frame)
            last = self.screen.processor.last_picture
            yield frame, shown[-1] if shown else last

    def _frame(self, frame: CapturedFrame) -> None:
        begun = 0
        for place, command in enumerate(frame.commands):
            if isinstance(command, c.Halt):
                try:
                    self.screen.execute(self._placed(one) for one in frame.commands[begun:place])
                except OutOfMemory as reason:
                    line = frame.line_of(begun)
                    raise CaptureError("CAP-007", str(reason), frame.file, line) from None
                begun = place + 1

    def _placed(self, command: c.QueueCommand) -> c.QueueCommand:
        """The command with addresses. Raises OutOfMemory."""
        memory, writer = self.screen.memory, self.screen.writer
        if isinstance(command, c.Draw):
            state = self.capture.state_of(command)
            places: dict[str, Any] = {
                "pipe_state": writer.pipe_state(state),
                "shader_state": writer.shader_state(state),
            }
        elif isinstance(command, c.Clear):
            framebuffer = self.capture.parts["framebuffer"][command.framebuffer]
            places = {"framebuffer": writer.framebuffer(framebuffer)}
        elif isinstance(command, c.Upload):
            places = {"address": memory.keep(self.capture.data[command.address], 64)}
        elif isinstance(command, c.ReadBack):
            shape = box_shape(self.capture.resources[command.resource], Box(*command.box))
            places = {"address": memory.arena.allocate(shape[0] * shape[1] * shape[2], 64)}
        else:
            return command
        return replace(command, **places)
