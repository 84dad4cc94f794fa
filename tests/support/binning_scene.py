"""Binning lists with vertices, indices and shaders, run by both engines and compared."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.frames import RED, Frame, solid
from tests.support.jobs import BFC, CT0CA, CT0EA, viewport

from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

VERTICES = 200
STRIDE = 28


LIST_BYTES = 1 << 16


def copies(words: int, extra: str = "") -> str:
    """A vertex program that copies its attributes."""
    text = f"ldi vr_setup, 0x{words << 20 | 0x1A00:x}\nldi vw_setup, 0x1a00\n"
    return text + "nop ; nop\n" * 3 + extra + "mov vpm, vpm ; nop\n" * words + "nop ; nop ; thrend\nnop\nnop"


def vertex(rng: random.Random) -> bytes:
    """Clip coordinates, screen position in 1/16 pixels, Zs, 1/Wc; some need clipping."""
    x, y = rng.uniform(-1.4, 1.4), rng.uniform(-1.4, 1.4)
    z, w = rng.uniform(-1.2, 1.2), rng.choice((1.0, 1.0, 0.5, 2.0))
    screen = (int(x / w * 64 * 16), int(y / w * 64 * 16))
    return struct.pack("<4fhhff", x, y, z, w, *screen, 0.5, 1 / w)


@dataclass
class Scene:
    """A frame with vertices, indices and shaders; `asked` counts draws that Python had to shade."""

    engine: str = "jit"
    seed: int = 1
    choices: dict[str, str] = field(default_factory=dict)
    asked: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.frame = Frame(engine=self.engine, unknowns=DEFAULT_UNKNOWNS.with_(**self.choices))
        job = self.frame.job
        self.vertices = job.put(b"".join(vertex(rng) for _ in range(VERTICES)))
        data = [rng.randrange(VERTICES) for _ in range(400)]
        self.shorts = job.put(struct.pack("<400H", *data))
        self.bytes = job.put(bytes(data))
        self.fragment = job.program(solid(RED))
        self.copy = job.program(copies(7))
        self.vertex = job.program(copies(3))
        stage: Any = self.frame.v3d.binning.coordinates
        shade = stage.shade

        def counted(*arguments: Any) -> None:
            self.asked += 1
            shade(*arguments)

        stage.shade = counted

    def record(self, coordinate: int, stride: int = STRIDE, flags: int = 5, base: int = 0) -> bytes:
        """A GL shader record."""
        data = struct.pack("<HBBII", flags, 0, 0, self.fragment, 0)
        data += struct.pack("<HBBII", 0, 1, 12, self.vertex, 0)
        data += struct.pack("<HBBII", 0, 1, STRIDE, coordinate, 0)
        return data + struct.pack("<IBBBB", base or self.vertices, STRIDE - 1, stride, 0, 0)

    def shader(self, coordinate: int, **options: int) -> bytes:
        """A record 64 with a GL shader record."""
        return build(64, address=self.frame.job.put(self.record(coordinate, **options)), attributes=1)

    def indexed(self, mode: int, length: int, **fields: int) -> bytes:
        """A record 32."""
        kind = fields.get("index_type", 1)
        values = {"index_type": kind, "address": self.shorts if kind else self.bytes}
        return build(32, mode=mode, length=length, **(values | {"maximum_index": 0xFFFF} | fields))

    def bin(self, body: bytes, memory: int = LIST_BYTES, start: int | None = None) -> None:
        """Runs a binning list, supplying memory as long as the binner asks for it."""
        job, v3d = self.frame.job, self.frame.v3d
        columns, rows = job.tiles
        self.lists = job.room(LIST_BYTES)
        data = build(112, address=self.lists, memory_size=memory, tiles_x=columns, tiles_y=rows)
        data += build(6) + viewport(job) + build(105, x=1024.0, y=1024.0)
        data += body + build(4)
        if start is None:
            start = job.put(data)
        else:
            job.memory.write(start, data)
        v3d.write(CT0CA, start)
        v3d.write(CT0EA, (start + len(data)) & 0xFFFFFFFF)
        for _ in range(20):
            if v3d.binning.out_of_memory:
                v3d.write(BY_NAME["BPOA"].offset, job.room(LIST_BYTES))
                v3d.write(BY_NAME["BPOS"].offset, 4096)

    def result(self) -> tuple[object, ...]:
        """Everything a program can see."""
        frame, binning = self.frame, self.frame.v3d.binning
        memory = frame.job.memory.read(self.lists, frame.job.top - self.lists)
        names = (BFC, *(BY_NAME[name].offset for name in ("CT0CS", "CT0CA", "BPCA", "BPCS", "PCS")))
        registers = [frame.v3d.read(offset) for offset in names]
        report = frame.reporter
        errors = frame.v3d.read(BY_NAME["ERRSTAT"].offset)
        return memory, registers, binning.binner.totals, report.items, report.counts, errors


def both(run: Callable[[Scene], None], *, messages: bool = True, **options: Any) -> Scene:
    """Runs the same in the interpreter and natively, compares, returns the native scene."""
    reference, fast = (Scene(engine, **options) for engine in ("interpreter", "jit"))
    for scene in (reference, fast):
        run(scene)
    compared = None if messages else 3
    assert reference.result()[:compared] == fast.result()[:compared]
    return fast


def all_modes(scene: Scene) -> bytes:
    """Draws of every mode with indices of every kind, and state between them."""
    body = b""
    for number, mode in enumerate((0, 1, 2, 3, 4, 5, 6) * 3):
        length = 3 + 7 * number
        body += build(97, flags=number) if number % 3 == 0 else build(1)
        body += (
            scene.indexed(mode, length, index_type=0),
            scene.indexed(mode, length, address=scene.shorts + 2 * number),
            build(33, mode=mode, length=length, first=number),
        )[number % 3]
    return body
