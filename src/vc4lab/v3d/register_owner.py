"""What the registers with behaviour need of the V3D that they are part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from vc4lab.v3d.checks.hints import Lint
    from vc4lab.v3d.cle.binning import BinningStage
    from vc4lab.v3d.cle.thread import ListThread
    from vc4lab.v3d.draws.frame import FrameRenderer
    from vc4lab.v3d.events import V3DListeners
    from vc4lab.v3d.progress import Progress
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.scheduler import UserPrograms


class RegisterOwner(Protocol):
    """A V3D, as its registers see it."""

    values: dict[str, int]
    unknowns: Unknowns
    listeners: V3DListeners
    lint: Lint
    threads: tuple[ListThread, ListThread]
    binning: BinningStage
    frames: FrameRenderer
    programs: UserPrograms

    @property
    def progress(self) -> Progress | None:
        """When the guest sees what is done; None: at once."""

    def seems_busy(self, thread: int) -> bool:
        """Whether the guest still sees a list thread work."""

    def finish(self, thread: int, what: str) -> None:
        """Let guest time go on until a list thread is through that is reset (`what`)."""

    def start(self, thread: int) -> None:
        """Begin a list thread's list."""

    def run(self) -> None:
        """Go on with the lists."""
