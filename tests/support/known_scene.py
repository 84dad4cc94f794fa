"""Frames whose records come again and again at the same places, with a listener and without.

`both` runs the same with each: memory, registers and messages have to be the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.frames import BLUE, GREEN, RED, Frame, solid
from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, nv_vertex, viewport

from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME

SIZE = 0x8000
RESET = 1 << 15
REGISTERS = (
    *("CT0CS", "CT1CS", "CT0CA", "CT1CA", "CT0LC", "CT1LC", "PCS", "BFC", "RFC", "INTCTL"),
    *("BPCA", "BPCS", "BPOS", "CT0PC", "ERRSTAT"),
)


def offset(name: str) -> int:
    return BY_NAME[name].offset


@dataclass
class Scene:
    """A V3D, lists that are written where the last ones were, and what came of them."""

    heard: bool
    frame: Frame = field(default_factory=Frame)
    seen: list[object] = field(default_factory=list)
    modes: int = 0

    def __post_init__(self) -> None:
        job = self.frame.job
        if self.heard:
            self.frame.v3d.listeners.memory_used.subscribe(lambda _: None)
        corners = ((3.0, 3.0), (120.0, 9.0), (40.0, 110.0))
        vertices = b"".join(nv_vertex(*corner, 0.5, 1.0) for corner in corners)
        self.shaders = {c: self.frame.nv_shader(solid(c), vertices) for c in (RED, GREEN, BLUE)}
        self.lists, self.state = job.room(SIZE), job.room(SIZE)
        self.bin_at, self.render_at = job.room(SIZE), job.room(SIZE)
        self.surfaces = self.frame.surface, job.room(SIZE * 4)
        lint: Any = self.frame.v3d.lint
        for name in ("binning_mode", "rendering_mode"):
            setattr(lint, name, self._counted(getattr(lint, name)))

    def _counted(self, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            self.modes += 1
            return function(*arguments)

        return counted

    def grid(self, **fields: int) -> bytes:
        """A record 112."""
        columns, rows = self.frame.job.tiles
        values = {"address": self.lists, "memory_size": SIZE, "state_address": self.state}
        return build(112, **(values | {"tiles_x": columns, "tiles_y": rows} | fields))

    def mode(self, **fields: int) -> bytes:
        """A record 113."""
        job = self.frame.job
        values = {"address": self.surfaces[0], "width": job.width, "height": job.height}
        return build(113, **(values | {"format": 1} | fields))

    def triangle(self, colour: int = RED) -> bytes:
        """State, shader, and a draw."""
        draw = build(33, mode=4, length=3, first=0)
        return viewport(self.frame.job) + self.shaders[colour] + draw

    def tiles(self, columns: int = 2, rows: int = 2, wait: bytes = b"") -> bytes:
        """Records of a rendering list after the mode."""
        data = build(115) + build(28) + wait
        for tile in range(columns * rows):
            data += build(115, column=tile % columns, row=tile // columns)
            data += build(17, address=self.lists + 32 * tile)
            data += build(25 if tile == columns * rows - 1 else 24)
        return data

    def start(self, thread: int, data: bytes) -> None:
        """Runs a list in the place of the one before, and looks at everything."""
        memory, v3d = self.frame.job.memory, self.frame.v3d
        place = self.render_at if thread else self.bin_at
        memory.write(place, data)
        current, end = ((CT0CA, CT0EA), (CT1CA, CT1EA))[thread]
        v3d.write(current, place)
        v3d.write(end, place + len(data))
        self.look()

    def look(self) -> None:
        """Notes what a program can see."""
        memory, v3d = self.frame.job.memory, self.frame.v3d
        registers = [v3d.read(offset(name)) for name in REGISTERS]
        ranges = ((self.lists, SIZE), (self.surfaces[0], 0x10000), (self.surfaces[1], 0x10000))
        self.seen.append((registers, [hash(memory.read(*item)) for item in ranges]))
        self.seen.append((list(v3d.lint.grids), v3d.waiting, v3d.binning.binner.totals))

    def draw(self, colour: int = RED, binning: bytes | None = None, mode: bytes | None = None) -> None:
        """A frame, with semaphores as drivers use them."""
        head = self.grid() if binning is None else binning
        self.start(0, head + build(6) + self.triangle(colour) + build(7) + build(4))
        after = self.mode() if mode is None else mode
        clear = build(114, colour=0xFF402010, colour_high=0xFF402010, z=0xFFFFFF)
        self.start(1, clear + after + self.tiles(wait=build(8)))

    def reset(self) -> None:
        """Both threads."""
        for name in ("CT0CS", "CT1CS"):
            self.frame.v3d.write(offset(name), RESET)
        self.look()


def both(run: Callable[[Scene], None], **options: object) -> Scene:
    """Runs the same with a listener and without, compares, returns the scene without."""
    named, known = (Scene(heard, Frame(threads=1, **options)) for heard in (True, False))  # type: ignore[arg-type]
    for scene in (named, known):
        run(scene)
    for there, here in zip(named.seen, known.seen, strict=True):
        assert there == here
    assert named.modes >= known.modes
    assert named.frame.reporter.items == known.frame.reporter.items
    assert named.frame.reporter.counts == known.frame.reporter.counts
    return known
