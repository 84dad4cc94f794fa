"""Captured jobs as objects: frames of events at the V3D's door.

capture = open_jobs("run.vc4cap")          # jobs/load.py
for frame in capture.frames:
    for event in frame.events:
        ...
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image

    from vc4lab.capture.pages import Pages

MOST_FRAMES = 100_000


class PagesLoaded(NamedTuple):
    """Pages of memory hold something else from now on: pages `first` … of the capture."""

    address: int
    first: int
    pages: int


class Zeroed(NamedTuple):
    """Pages of memory hold zeros from now on."""

    address: int
    pages: int


class Filled(NamedTuple):
    """Pages of memory each hold the same page of the capture from now on."""

    address: int
    page: int
    pages: int


class Patched(NamedTuple):
    """Bytes of memory that were edited."""

    address: int
    data: bytes


class Written(NamedTuple):
    """A register of the V3D was written."""

    register: str
    value: int


class Settled(NamedTuple):
    """The user programs that were queued ran."""


class PowerCame(NamedTuple):
    """The V3D is as it was when it was switched on."""


class Stored(NamedTuple):
    """Gives the check sum of a surface's bytes after a frame was stored."""

    address: int
    size: int
    sum: str


class Shown(NamedTuple):
    """Describes the memory that was on the display: bytes from row to row, bits of a pixel.

    `order` is "rgb" (red in the lowest byte) or "bgr"; 16 bits are 565 with red on top.
    """

    address: int
    width: int
    height: int
    pitch: int
    bits: int
    order: str


class Origin(NamedTuple):
    """Says where the program was that wrote the next register."""

    text: str


class Noted(NamedTuple):
    """Says something that is known of the frame, for people."""

    text: str


class JobBegun(NamedTuple):
    """Begins a job with a name: the events after it belong to it."""

    name: str


class Submitted(NamedTuple):
    """Names what a program handed to its driver for this job: a file of the capture, for conversions."""

    file: str


class BufferNamed(NamedTuple):
    """Names what lies in memory, in the words of the front."""

    address: int
    size: int
    label: str


Step = PagesLoaded | Zeroed | Filled | Patched | Written | Settled | PowerCame
"""An event that a replay carries out."""
Event = Step | Stored | Shown | Origin | Noted | JobBegun | Submitted | BufferNamed


@dataclass
class JobsFrame:
    """Holds what reached the V3D from one picture to the next.

    Attributes
    ----------
    number
        As the front counted it, from 1 on.
    events
        In order.
    start
        The state of the V3D when the frame began, with memory as at power-on; None: it goes on from
        the frame before.
    picture
        What was shown; a picture, or a PNG file; None: nothing was.
    lines
        The line of each event in its file.
    files
        What `Submitted` names.
    """

    number: int
    events: list[Event] = field(default_factory=list)
    start: dict[str, Any] | None = None
    picture: Image | bytes | None = None
    lines: list[int] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """Return the name of the file with its events."""
        return f"jobs/{self.number}/events.txt"

    @property
    def has_jobs(self) -> bool:
        """Whether anything of it lets the V3D work."""
        return any(isinstance(one, Settled) or _starts(one) for one in self.events)


def _starts(event: Event) -> bool:
    return isinstance(event, Written) and event.register in STARTS


STARTS = frozenset(("CT0EA", "CT1EA", "CT0CS", "CT1CS", "BPOS", "SRQPC"))
"""Registers whose writes may let the V3D work."""


@dataclass
class JobsCapture:
    """Frames of jobs, and what they need.

    Attributes
    ----------
    front
        Which command it was captured from.
    program
        What ran there.
    ram_bytes, noise
        Of guest memory, as `GuestMemory` has them.
    unknowns
        Choices for undocumented hardware that are not the default ones.
    forgiving
        As `GpuOptions.forgiving`.
    checks
        Whether the V3D was that of a board, with guest time.
    pages
        What memory holds.
    """

    front: str = ""
    program: str = ""
    ram_bytes: int = 1 << 30
    noise: tuple[int, int] | None = None
    unknowns: dict[str, str] = field(default_factory=dict)
    forgiving: bool = False
    checks: bool = False
    frames: list[JobsFrame] = field(default_factory=list)
    pages: Pages | None = None
