"""OpenGL programs on the driver: for the command line, tests and notebooks.

run = Gl.run(["glmark2-es2", "-b", "build:nframes=3"], frames=3)
run.code, run.frames, run.draws
run.image          # the last picture
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vc4lab.diagnostics import Reporter
from vc4lab.driver.capture.recorder import Recorder
from vc4lab.driver.pictures import Snapshot
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.images.pixels import png_bytes
from vc4lab.jobs.recorder import LIMIT
from vc4lab.mesa.server.program import SOCKET, TMP, PrivateTmp, Program, raise_limit
from vc4lab.mesa.server.server import Server
from vc4lab.mesa.store.resources import Refused
from vc4lab.options import GpuOptions

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.driver.capture.model import Capture
    from vc4lab.driver.queue.events import FrameShown

OnFrame = Callable[[int, "Image"], None]


@dataclass
class GlRun:
    """The result of a run.

    Attributes
    ----------
    code
        The program's exit code; of one that a signal ended 128 + its number.
    frames
        Pictures that windows showed.
    draws, left_out
        Draws of the program, and those that could not be drawn.
    jobs
        Jobs of the V3D.
    connections
        How often the program connected.
    last
        The last picture of a window, or, where no window was, of what was drawn to last.
    frames_came
        Whether it was ended because the frames that were asked for had come.
    capture
        The frames that were kept, if any were asked for.
    """

    code: int = 0
    frames: int = 0
    draws: int = 0
    left_out: int = 0
    jobs: int = 0
    connections: int = 0
    last: Snapshot | None = None
    frames_came: bool = False
    capture: Capture | None = None
    reporter: Reporter = field(default_factory=Reporter)

    @property
    def image(self) -> Image | None:
        """The last picture (RGB); None if there is none."""
        with contextlib.suppress(Refused):
            return self.last.image() if self.last is not None else None
        return None

    def __repr__(self) -> str:
        size = f"{self.image.width}x{self.image.height}" if self.image else "no picture"
        return f"<GlRun: code {self.code}, {self.frames} frames, {self.draws} draws, {size}>"

    def _repr_png_(self) -> bytes | None:
        """The picture, in a notebook."""
        return png_bytes(self.image)


class Gl:
    """A server that draws on a V3D, for one program; as a context manager.

    Parameters
    ----------
    protocol
        2, or 0: data through the socket.
    shared_tmp
        Listen at /tmp/.virgl_test itself instead of in the program's own /tmp.
    frames
        End the program after so many pictures.
    on_frame
        Called with number and picture of each frame.
    capture
        Keep these frames, from the first to the last; `result.capture` has them then.
    on_capture
        Called when the last of them was shown.
    capture_bytes
        Memory that a capture may hold at most.

    Raises OSError if the socket cannot be made.
    """

    def __init__(
        self,
        *,
        reporter: Reporter | None = None,
        gpu: GpuOptions | None = None,
        protocol: int = 2,
        shared_tmp: bool = False,
        frames: int | None = None,
        on_frame: OnFrame | None = None,
        capture: tuple[int, int] | None = None,
        on_capture: Callable[[Capture], None] | None = None,
        capture_bytes: int = LIMIT,
        keeps_image: bool = True,
    ) -> None:
        self.result = GlRun(reporter=reporter or Reporter())
        self.screen = VideoCoreScreen(self.result.reporter, mesa_compiler(), gpu)
        self._frames = frames
        self._on_frame = on_frame
        self._keeps_image = keeps_image
        self._last: Snapshot | None = None
        self._stack = contextlib.ExitStack()
        self._tmp = None if shared_tmp else self._stack.enter_context(PrivateTmp())
        path = TMP / SOCKET if self._tmp is None else self._tmp.socket
        try:
            self.server = self._stack.enter_context(
                Server(path, self.screen, self.result.reporter, protocol=protocol)
            )
        except OSError:
            self._stack.close()
            raise
        self._recorder: Recorder | None = None
        self._on_capture = on_capture
        if capture is not None:
            self._recorder = Recorder(
                self.screen, *capture, on_done=self._captured, limit=capture_bytes, tell=self._capture_full
            )
        self._stack.enter_context(self.screen.listeners.frame.subscribe(self._shown))

    def _capture_full(self, text: str) -> None:
        self.result.reporter.report("CAP-009", text, block="GL")

    def _captured(self) -> None:
        assert self._recorder is not None
        made = self.result.capture = self._recorder.capture
        if self._on_capture is not None:
            self._on_capture(made)

    def __enter__(self) -> Gl:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, program: Sequence[str], environment: Mapping[str, str] | None = None) -> Program:
        """Start the program. Raises NotPossible, OSError."""
        folder = None if self._tmp is None else self._tmp.path
        chosen = os.environ if environment is None else environment
        if self._recorder is not None:
            self._recorder.capture.program = " ".join(program)
        self._program = self._stack.enter_context(Program(program, folder, chosen))
        return self._program

    def serve(self) -> GlRun:
        """Serve the started program until it ends. Raises StrictStop."""
        raise_limit()
        result = self.result
        self.server.watch(self._program.descriptor, self.server.end)
        self.server.run()
        self.screen.finish()
        if self._recorder is not None and not self._recorder.is_done:
            self._recorder.close()
            self._captured()
        if result.frames_came:
            self._program.stop()
        result.code = self._program.wait()
        if result.frames_came:
            result.code = 0
        counts = self.screen.processor.counts
        result.frames = counts.frame - 1
        result.draws, result.left_out, result.jobs = counts.draws, counts.left_out, counts.jobs
        result.connections = self.server.connections
        result.last = self._last
        if self._last is None and self._keeps_image:
            result.last = self.screen.processor.last_picture
        return result

    def _shown(self, event: FrameShown) -> None:
        result = self.result
        is_last = self._frames is not None and event.number >= self._frames
        if self._on_frame is not None or self._keeps_image:
            self._last = Snapshot(event.picture)
            if self._on_frame is not None:
                with contextlib.suppress(Refused):
                    self._on_frame(event.number, self._last.image())
        if is_last and not result.frames_came:
            result.frames_came = True
            self.server.end()

    @classmethod
    def run(
        cls, program: Sequence[str], *, environment: Mapping[str, str] | None = None, **options: Any
    ) -> GlRun:
        """Run a program to its end; `options` are those of the class.

        Raises NotPossible if it cannot get a /tmp of its own here, OSError if it cannot start,
        StrictStop.
        """
        with cls(**options) as gl:
            gl.start(program, environment)
            return gl.serve()
