"""Resources: buffers and textures with all their levels, as the server keeps them.

A resource has its own memory, where its `Screen` says; the memory that it shares with the client
(`staging`) is only where transfers come from and go to. There, rows of all levels are without
padding, as Mesa lays them out.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import Bind, Target
from vc4lab.mesa.protocol.formats import Layout, layout_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vc4lab.mesa.protocol.messages import ResourceCreate, ResourceCreate2


class Refused(ValueError):  # noqa: N818 - a fact about what was asked
    """Something that a client asked for and cannot have: a code and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Box(NamedTuple):
    """A part of a level, in texels; z counts layers, faces or slices."""

    x: int
    y: int
    z: int
    width: int
    height: int
    depth: int

    def __str__(self) -> str:
        size = f"{self.width}x{self.height}x{self.depth}"
        return f"{size} at {self.x},{self.y},{self.z}"


@dataclass(frozen=True)
class Level:
    """One level of a resource: its size in texels, and in rows of blocks and their bytes."""

    width: int
    height: int
    layers: int
    rows: int
    row_bytes: int

    @property
    def size(self) -> int:
        """Bytes of all layers."""
        return self.layers * self.rows * self.row_bytes


class Resource(ABC):
    """A buffer or a texture. Raises Refused if there cannot be such a one.

    Attributes
    ----------
    handle
        The client's number for it.
    layout
        How its texels lie in memory.
    levels
        From the largest on.
    samples
        Samples of a pixel: 1 or 4; a resource that has several always has 4.
    size
        Bytes of all levels and samples.
    staging
        The memory that is shared with the client; None if it has none.
    """

    def __init__(self, asked: ResourceCreate | ResourceCreate2) -> None:
        self.handle = asked.handle
        self.target = asked.target
        self.format: Any = asked.format
        self.bind = asked.bind
        self.width, self.height, self.depth = asked.width, asked.height, max(asked.depth, 1)
        self.array_size = max(asked.array_size, 1)
        self.last_level = asked.last_level
        self.staging: Staging | None = None
        layout = layout_of(self.format)
        if layout is None:
            raise Refused("GL-006", f"{self}: nothing can have the format {self.format}")
        self.layout: Layout = layout
        self.samples = limits.SAMPLES if asked.nr_samples > 1 else 1
        self._check(asked.nr_samples)
        self.levels = [Level(*self._shape(level)) for level in range(self.last_level + 1)]
        self.size = self.samples * sum(level.size for level in self.levels)
        if self.size > limits.RESOURCE_BYTES:
            raise Refused("GL-006", f"{self} would have {self.size} bytes")

    def _check(self, samples: int) -> None:
        is_buffer = self.target == Target.BUFFER
        most = limits.RESOURCE_BYTES if is_buffer else limits.SIZE
        if not 1 <= self.width <= most or not 1 <= self.height <= limits.SIZE:
            raise Refused("GL-006", f"{self}: its size must be between 1 and {most}")
        if self.depth > limits.SIZE or self.array_size > limits.SIZE:
            raise Refused("GL-006", f"{self}: it has too many slices or layers")
        if samples > limits.SAMPLES:
            raise Refused("GL-007", f"{self}: {samples} samples; the capabilities say {limits.SAMPLES}")
        if samples > 1 and (self.target != Target.TEXTURE_2D or self.last_level):
            raise Refused("GL-007", f"{self}: {samples} samples are for pictures of one level")
        largest = max(self.width, self.height, self.depth)
        if self.last_level >= largest.bit_length():
            raise Refused("GL-006", f"{self}: its last level cannot be {self.last_level}")

    def _shape(self, level: int) -> tuple[int, int, int, int, int]:
        """Width, height, layers, rows of blocks and bytes of a row of a level."""
        width, height = max(self.width >> level, 1), max(self.height >> level, 1)
        layers = self.array_size
        if self.target == Target.TEXTURE_3D:
            layers = max(self.depth >> level, 1)
        elif self.target == Target.TEXTURE_CUBE:
            layers = 6
        return width, height, layers, self.layout.rows(height), self.layout.row_bytes(width)

    def __str__(self) -> str:
        size = f"{self.width}x{self.height}"
        if self.depth > 1 or self.array_size > 1:
            size += f"x{max(self.depth, self.array_size)}"
        what = "buffer" if self.target == Target.BUFFER else str(self.target)
        return f"resource {self.handle} ({what} {self.format} {size})"

    @property
    def is_window(self) -> bool:
        """Whether its pixels are shown."""
        return bool(self.bind & (Bind.DISPLAY_TARGET | Bind.SCANOUT))

    def level(self, number: int) -> Level:
        """A level. Raises Refused."""
        if number > self.last_level:
            raise Refused("GL-005", f"{self} has no level {number}")
        return self.levels[number]

    def check(self, number: int, box: Box) -> None:
        """Raises Refused if a box is not inside a level, or does not begin with a block."""
        level, layout = self.level(number), self.layout
        inside = (
            (min(box) >= 0)
            and (box.x + box.width <= level.width)
            and (box.y + box.height <= level.height)
            and (box.z + box.depth <= level.layers)
        )
        if not inside:
            size = f"{level.width}x{level.height}x{level.layers}"
            raise Refused("GL-005", f"{self}: {box} is outside of level {number}, {size}")
        if box.x % layout.block_width or box.y % layout.block_height:
            raise Refused("GL-005", f"{self}: {box} does not begin with a block")

    @abstractmethod
    def get(self, number: int, box: Box) -> NDArray[np.uint8]:
        """The blocks of a box of a level, as (layer, row, byte), to read only. Of several samples
        it is their mean; of depth and stencil the first one.

        Raises Refused if it is not inside, or does not consist of whole blocks.
        """

    @abstractmethod
    def put(self, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        """Store the blocks of a box, of the same shape, in all samples. Raises Refused as
        `get`.
        """

    def get_sample(self, sample: int, number: int, box: Box) -> NDArray[np.uint8]:
        """As `get`, of one sample."""
        return self.get(number, box)

    def put_sample(self, sample: int, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        """As `put`, in one sample."""
        self.put(number, box, blocks)

    def staging_part(
        self, number: int, box: Box, offset: int, stride: int, layer_stride: int
    ) -> NDArray[np.uint8]:
        """A box in this resource's staging, from `offset` on. Raises Refused."""
        if self.staging is None:
            raise Refused("GL-005", f"{self} shares no memory")
        level = self.level(number)
        memory: Any = self.staging.memory
        step = stride or level.row_bytes
        jump = layer_stride or step * level.rows
        return box_in(memory, self, box, offset, step, jump)


class HostResource(Resource):
    """A resource in memory of its own, rows of all levels without padding.

    Attributes
    ----------
    memory
        All levels from the largest on; those of each sample after each other.
    """

    def __init__(self, asked: ResourceCreate | ResourceCreate2) -> None:
        super().__init__(asked)
        self.memory = np.zeros(self.size, np.uint8)
        self._blocks = []
        start = 0
        for level in self.levels * self.samples:
            blocks = self.memory[start : start + level.size]
            self._blocks.append(blocks.reshape(level.layers, level.rows, level.row_bytes))
            start += level.size

    def get(self, number: int, box: Box) -> NDArray[np.uint8]:
        if self.samples > 1:
            return mean_of(self, number, box)
        return self.get_sample(0, number, box)

    def get_sample(self, sample: int, number: int, box: Box) -> NDArray[np.uint8]:
        self.check(number, box)
        layout = self.layout
        first = box.x // layout.block_width * layout.block_bytes
        top = box.y // layout.block_height
        return self._blocks[sample * len(self.levels) + number][
            box.z : box.z + box.depth,
            top : top + layout.rows(box.height),
            first : first + layout.row_bytes(box.width),
        ]

    def put(self, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        for sample in range(self.samples):
            self.put_sample(sample, number, box, blocks)

    def put_sample(self, sample: int, number: int, box: Box, blocks: NDArray[np.uint8]) -> None:
        self.get_sample(sample, number, box)[...] = blocks


def mean_of(resource: Resource, number: int, box: Box) -> NDArray[np.uint8]:
    """Return several samples' value for `get`, as the tile buffer resolves them. Raises Refused."""
    first = resource.get_sample(0, number, box)
    if resource.layout.has_depth:
        return first
    total = first.astype(np.uint16)
    for sample in range(1, resource.samples):
        total += resource.get_sample(sample, number, box)
    half = resource.samples // 2
    return ((total + np.uint16(half)) // np.uint16(resource.samples)).astype(np.uint8)


def box_in(
    memory: Any, resource: Resource, box: Box, offset: int, stride: int, layer_stride: int
) -> NDArray[np.uint8]:
    """A box of a resource's texels in other memory, as (layer, row, byte). Raises Refused."""
    layout = resource.layout
    shape = (box.depth, layout.rows(box.height), layout.row_bytes(box.width))
    if 0 in shape:
        return np.zeros(shape, np.uint8)
    last = offset + (shape[0] - 1) * layer_stride + (shape[1] - 1) * stride + shape[2]
    if min(*box, offset) < 0 or last > len(memory):
        raise Refused("GL-005", f"{resource}: {box} ends at byte {last} of {len(memory)} bytes of memory")
    strides = (layer_stride, stride, 1)
    return np.ndarray(shape, np.uint8, memory, offset, strides)


MOST_SPARE = 256
"""Mesa keeps buffers for a second before it gives them back, mostly one for each frame then."""
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class Staging:
    """`size` bytes, zero at first. Raises OSError if the host has no room.

    The file is sealed: a client that shrinks it would make the server's next access a bus error.

    Attributes
    ----------
    is_kept
        Whether it is used again (`SpareStagings`), and so remains the owner of its descriptor.
    """

    def __init__(self, size: int, *, is_kept: bool = False) -> None:
        self.size = size
        self.is_kept = is_kept
        self.descriptor = os.memfd_create("vtest", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.descriptor, size)
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
            if not is_kept:
                self.memory = self._mapped()
        except BaseException:
            os.close(self.take_descriptor())
            raise

    @cached_property
    def memory(self) -> mmap.mmap:
        """The bytes. Of what is kept they are seldom needed, and a mapping has a descriptor, too.

        Raises OSError.
        """
        return self._mapped()

    @cached_property
    def view(self) -> memoryview:
        """The bytes as a view, of which parts are no copies."""
        return memoryview(self.memory)

    def _mapped(self) -> mmap.mmap:
        return mmap.mmap(self.descriptor, self.size)

    def take_descriptor(self) -> int:
        """The file's descriptor, which is then the caller's."""
        taken, self.descriptor = self.descriptor, -1
        return taken

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)


class SpareStagings:
    """Memory of one size that a client's resources have given back, for its next ones.

    Only where a program makes and drops such resources all the time: each keeps a descriptor. It
    stays with the client, whose program may still have it mapped.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._spare: list[Staging] = []

    def take(self) -> Staging:
        """One that is zero. Raises OSError."""
        if not self._spare:
            return Staging(self.size, is_kept=True)
        taken = self._spare.pop()
        os.pwrite(taken.descriptor, bytes(self.size), 0)
        return taken

    def give_back(self, staging: Staging) -> None:
        """No resource has it any more."""
        if staging.is_kept and len(self._spare) < MOST_SPARE:
            self._spare.append(staging)
