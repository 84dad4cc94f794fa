"""Shows pictures while `vc4lab drm` runs programs: a window, and frames for a recording."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

from vc4lab.cli.outputs import Outputs, say
from vc4lab.viewer.background import BackgroundRecorder

if TYPE_CHECKING:
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.viewer.controls import InputSink
    from vc4lab.viewer.live import LiveWindow

NANOSECONDS = 1_000_000_000


class DrmPictures:
    """The pictures of a device's run, as the command line asks for them.

    Parameters
    ----------
    outputs
        What is asked for.
    sink
        Who gets the window's keys and pointer.
    """

    def __init__(self, device: DrmDevice, outputs: Outputs, sink: InputSink | None) -> None:
        self._device = device
        self._outputs = outputs
        self._left_out = False
        self.window: LiveWindow | None = None
        self._recorder: BackgroundRecorder | None = None
        if outputs.recorder is not None:
            self._recorder = BackgroundRecorder(outputs.recorder, may_drop=device.screen.paced)
            device.frame_listeners.append(self._record)
        if outputs.options.window:
            self._open(sink)

    def _open(self, sink: InputSink | None) -> None:
        from vc4lab.drm.device.pictures import FrameSource
        from vc4lab.viewer.live import LiveWindow
        from vc4lab.viewer.window import NoWindow

        device = self._device
        source = FrameSource(device.pictures)
        try:
            window = LiveWindow("vc4lab drm", source, sink, device.supervisor.stop)
        except NoWindow as reason:
            say(f"vc4lab: {reason}")
            return
        self.window = window

        def on_frame(_count: int) -> None:
            source.notice()
            window.notice()

        device.frame_listeners.append(on_frame)

    def _record(self, count: int) -> None:
        from vc4lab.scanout.composer import picture_of

        recorder = self._recorder
        assert recorder is not None
        if (count - 1) % self._outputs.options.every:
            return
        pixels = self._device.pictures.pixels if recorder.wants(self._now) else None
        taken = pixels is not None and recorder.add(partial(picture_of, pixels), self._now)
        self._left_out = not taken

    @property
    def _now(self) -> int:
        return int(self._device.screen.clock * NANOSECONDS)

    @property
    def was_closed(self) -> bool:
        """Whether the person closed the window."""
        return self.window is not None and self.window.closed

    def stay(self) -> bool:
        """The program ended by itself: its picture stays until the window is closed.

        False if Ctrl-C or SIGTERM closed it: what is asked for is still saved.
        """
        window = self.window
        if window is not None and window.has_picture and not window.closed:
            say("the window stays open until you close it")
            held = signal.signal(signal.SIGTERM, signal.default_int_handler)
            try:
                window.stay()
            except KeyboardInterrupt:
                return False
            finally:
                signal.signal(signal.SIGTERM, held)
        return True

    def close(self) -> None:
        """Take the window away."""
        if self.window is not None:
            self.window.close()
            if self.window.failure:
                say(f"vc4lab: the window has failed: {self.window.failure}")

    def save(self, code: int) -> int:
        """Write the files and show the preview; gives the final exit code."""
        if self._recorder is not None:
            self._recorder.finish()
            if self._recorder.dropped:
                say(f"{self._recorder.dropped} frames dropped, as recording is too slow")
        image = self._device.pictures.image
        return self._outputs.save(code, image, late=self._now if self._left_out else None)
