"""Decides what counts as a frame: one picture presented on the display.

* A program that renders with the V3D presents a frame each time the V3D completes one. With a
  framebuffer taller than the display (double buffering) the frame counts when the program flips to
  it, at the latest with the next vsync.
* A program that flips between halves of its framebuffer presents a frame with each flip.
* A program that draws with the CPU presents a frame at each vsync of a finished picture: one that
  it paced by the vsync interrupt, or that stood still since the vsync before, or, for a program
  that never pauses, any picture after `PATIENCE` vsyncs of constant change. An untouched black
  screen is no picture.
* A program that drives the display itself (the HVS) presents a frame when another display list
  comes into force or the one in force says something else at a vertical blank, else as one that
  draws with the CPU; frames of the V3D do not count.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from vc4lab.soc.videocore.framebuffer import Framebuffer

PATIENCE = 15
"""Vsyncs (a quarter of a second) an unfinished picture is waited for."""
V3D_PATIENCE = 120
"""Vsyncs without a V3D frame after which a program with a powered V3D counts as drawing by CPU,
unless it still polls the V3D."""

Listener = Callable[[int], None]


class FrameCounter:
    """Counts presented pictures.

    Attributes
    ----------
    count
        Frames presented since power-on.
    rendered
        Frames the V3D has completed.
    changes
        Vsyncs at which the picture had changed.
    moves
        How often something has happened since power-on after which the picture may be another.
    listeners
        Called with the new `count` while the frame is on the display.
    """

    def __init__(
        self,
        framebuffer: Framebuffer,
        v3d_powered: Callable[[], bool],
        vsyncs_acknowledged: Callable[[], int],
        v3d_awaited: Callable[[], bool] = lambda: False,
    ) -> None:
        self.count = 0
        self.rendered = 0
        self.changes = 0
        self.moves = 0
        self.listeners: list[Listener] = []
        self._framebuffer = framebuffer
        self._v3d_powered = v3d_powered
        self._acknowledgements = vsyncs_acknowledged
        self._v3d_awaited = v3d_awaited
        self._pending = False
        self._flipped = False
        self._list_is_new = False
        """Whether another display list has come into force, and not been looked at."""
        self._lists = 0
        self._shown: bytes | None = None
        """The picture at the last look; its checksum stands for it in saved states."""
        self._sum: int | None = None
        self._blank: int | None = None
        self._unsettled = 0
        self._last_acknowledged = 0
        self._vsyncs_with_v3d = 0
        framebuffer.on_flip = self.flip

    def __repr__(self) -> str:
        return f"<FrameCounter: {self.count}, counted by {self.source}>"

    @property
    def source(self) -> str:
        """The word for what the frames are counted by: "v3d", "flip" or "vsync"."""
        if self._framebuffer.composed is not None:
            return "flip" if self._lists else "vsync"
        if self.rendered:
            return "v3d"
        return "flip" if self._flipped else "vsync"

    def render_done(self) -> None:
        """The V3D has completed a frame."""
        self.moves += 1
        if self._framebuffer.composed is not None:
            self.rendered += 1
            return
        if self._pending:
            self._present()
        self.rendered += 1
        g = self._framebuffer.geometry
        if g.virtual_height >= 2 * g.height and self._framebuffer.allocation is not None:
            self._pending = True
        else:
            self._present()

    def flip(self) -> None:
        """The program moved the visible part of the framebuffer."""
        self.moves += 1
        if self.rendered == 0:
            self._flipped = True
            if not self._v3d_expected:
                self._present()
        elif self._pending:
            self._present()

    def list_changed(self) -> None:
        """Another display list has come into force."""
        self.moves += 1
        self._lists += 1
        self._list_is_new = True
        self._unsettled = 0
        self._present()

    def vsync(self, still: bool = False) -> None:
        """The display begins a new picture; `still`: memory is as it was at the last vsync."""
        self.moves += not still
        if self._pending:
            self._present()
        if self._framebuffer.composed is not None:
            self._composed_vsync(still)
            return
        powered = self._v3d_powered()
        if powered and not self.rendered:
            self._vsyncs_with_v3d += 1
        if self.rendered or self._flipped or self._framebuffer.allocation is None:
            return
        if powered and self._v3d_expected:
            return
        changed = (not still or self._shown is None) and self._look()
        acknowledged = self._acknowledgements()
        paced = acknowledged != self._last_acknowledged
        self._last_acknowledged = acknowledged
        if self.changes == 0 and self._checksum == self._blank:
            return
        self._unsettled = self._unsettled + 1 if changed else 0
        if not changed or paced or self._unsettled > PATIENCE:
            self._present()

    def _composed_vsync(self, still: bool) -> None:
        """Whether pixels have changed in a picture that is composed otherwise as before."""
        if self._list_is_new:
            # It counted already; what it shows is kept when it stays longer than to here.
            self._list_is_new = False
            self._shown = self._sum = None
            return
        if self._shown is None and self._lists:
            self._shown, self._sum = self._framebuffer.content(), None
            return
        changed = (not still or self._shown is None) and self._look()
        if changed:
            self._unsettled += 1
        if self._unsettled and (not changed or self._unsettled > PATIENCE):
            self._unsettled = 0
            self._present()

    def finish(self) -> None:
        """The program has halted: the picture it leaves counts if it was not counted yet."""
        self.moves += 1
        if self._pending:
            self._present()
        composed = self._framebuffer.composed is not None
        if composed and self._list_is_new:
            return
        if not composed and (self._framebuffer.allocation is None or self.rendered or self._flipped):
            return
        if self._look() or (self.count == 0 and self.changes):
            self._present()

    @property
    def _v3d_expected(self) -> bool:
        patient = self._vsyncs_with_v3d < V3D_PATIENCE
        return self._v3d_powered() and (patient or self._v3d_awaited())

    @property
    def _checksum(self) -> int | None:
        if self._sum is None and self._shown is not None:
            self._sum = zlib.crc32(self._shown)
        return self._sum

    @_checksum.setter
    def _checksum(self, checksum: int | None) -> None:
        """A state is restored: the picture itself is seen at the next look."""
        self._shown, self._sum = None, checksum

    def _look(self) -> bool:
        """Whether the picture has changed since the last look."""
        if self._shown is not None and self._framebuffer.holds(self._shown):
            return False
        before, known = self._checksum, self._shown is not None
        self._shown, self._sum = self._framebuffer.content(), None
        if before is None:
            before = self._blank = zlib.crc32(bytes(len(self._shown)))
        changed = known or self._checksum != before
        self.changes += changed
        return changed

    def _present(self) -> None:
        self._pending = False
        self.count += 1
        for listener in list(self.listeners):
            listener(self.count)
