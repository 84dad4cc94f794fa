"""Commands that do something: draw, clear, copy, transfer, count."""

from __future__ import annotations

from typing import Any

from vc4lab.mesa.protocol.codes import Direction, Filter, Primitive
from vc4lab.mesa.protocol.command import Command
from vc4lab.mesa.protocol.fields import array, bits, double, flag, rest, signed, word
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.state_commands import Scissor


class Clear(Command, number=7, name="CLEAR"):
    """Fills whole surfaces of the frame buffer."""

    buffers: int = word(0, hex=True, doc="depth 1, stencil 2, colour buffer i 4 << i")
    color: tuple[float, ...] = array(1, "f", 4)
    depth: float = double(5)
    stencil: int = word(7)


class DrawVbo(Command, number=8, name="DRAW_VBO", lengths=(12, 14, 20)):
    """Draws (pipe_draw_info). Words from 12 on only come with patches or indirect draws."""

    start: int = word(0)
    count: int = word(1)
    mode: Primitive = word(2, enum=Primitive)
    indexed: int = word(3, below=2)
    instance_count: int = word(4)
    index_bias: int = signed(5)
    start_instance: int = word(6)
    primitive_restart: int = word(7, below=2)
    restart_index: int = word(8)
    min_index: int = word(9)
    max_index: int = word(10)
    count_from_stream_output: int = word(11)
    vertices_per_patch: int = word(12)
    drawid: int = word(13)
    indirect: int = word(14, doc="resource")
    indirect_offset: int = word(15)
    indirect_stride: int = word(16)
    indirect_draw_count: int = word(17)
    indirect_draw_count_offset: int = word(18)
    indirect_draw_count_resource: int = word(19)

    def size(self) -> int:
        if self.indirect:
            return 20
        return 14 if self.mode == Primitive.PATCHES else 12

    def _parts(self) -> list[str]:
        """Only what the draw uses."""
        names = [f"{self.mode} start={self.start} count={self.count}"]
        if self.indexed:
            names.append(f"indexed index_bias={self.index_bias}")
        names.append(f"min_index={self.min_index} max_index={self.max_index}")
        if self.instance_count != 1 or self.start_instance:
            names.append(f"instance_count={self.instance_count} start_instance={self.start_instance}")
        if self.primitive_restart:
            names.append(f"restart_index=0x{self.restart_index:x}")
        if self.count_from_stream_output:
            names.append(f"count_from_stream_output={self.count_from_stream_output}")
        if self.vertices_per_patch or self.drawid:
            names.append(f"vertices_per_patch={self.vertices_per_patch} drawid={self.drawid}")
        if self.indirect:
            names.append(
                f"indirect={self.indirect}+{self.indirect_offset} stride={self.indirect_stride} "
                f"draw_count={self.indirect_draw_count}"
            )
        return names


class ResourceInlineWrite(Command, number=9, name="RESOURCE_INLINE_WRITE"):
    """The bytes of a box, in the stream."""

    resource: int = word(0)
    level: int = word(1)
    usage: int = word(2, hex=True)
    stride: int = word(3)
    layer_stride: int = word(4)
    x: int = word(5)
    y: int = word(6)
    z: int = word(7)
    width: int = word(8)
    height: int = word(9)
    depth: int = word(10)
    data: bytes = rest(11, "s")


class Blit(Command, number=16, name="BLIT"):
    """Copies a box to another one, scaled and converted (pipe_blit_info)."""

    mask: int = bits(0, 7, 0, hex=True, doc="r g b a 15, depth 16, stencil 32")
    filter: Filter = bits(0, 9, 8, enum=Filter)
    scissor_enable: bool = flag(0, 10)
    render_condition_enable: bool = flag(0, 11)
    alpha_blend: bool = flag(0, 12)
    scissor: tuple[Scissor, ...] = array(1, Scissor, 1)
    dst: int = word(3, doc="resource")
    dst_level: int = word(4)
    dst_format: Any = word(5, enum=Format)
    dst_box: tuple[int, ...] = array(6, "i", 6, doc="x y z width height depth")
    src: int = word(12, doc="resource")
    src_level: int = word(13)
    src_format: Any = word(14, enum=Format)
    src_box: tuple[int, ...] = array(15, "i", 6, doc="x y z width height depth")


class ResourceCopyRegion(Command, number=17, name="RESOURCE_COPY_REGION"):
    """Copies a box without conversion."""

    dst: int = word(0, doc="resource")
    dst_level: int = word(1)
    dstx: int = word(2)
    dsty: int = word(3)
    dstz: int = word(4)
    src: int = word(5, doc="resource")
    src_level: int = word(6)
    x: int = word(7)
    y: int = word(8)
    z: int = word(9)
    width: int = word(10)
    height: int = word(11)
    depth: int = word(12)


class BeginQuery(Command, number=19, name="BEGIN_QUERY"):
    """Counting begins."""

    handle: int = word(0)


class EndQuery(Command, number=20, name="END_QUERY"):
    """Counting ends."""

    handle: int = word(0)


class GetQueryResult(Command, number=21, name="GET_QUERY_RESULT"):
    """Asks for the result, in the query's buffer."""

    handle: int = word(0)
    wait: int = word(1, below=2)


class Transfer3d(Command, number=43, name="TRANSFER3D"):
    """Copies a box between a resource and its shared memory."""

    resource: int = word(0)
    level: int = word(1)
    usage: int = word(2, hex=True)
    stride: int = word(3, doc="0: that of the level")
    layer_stride: int = word(4)
    x: int = word(5)
    y: int = word(6)
    z: int = word(7)
    width: int = word(8)
    height: int = word(9)
    depth: int = word(10)
    offset: int = word(11, doc="of the box in the shared memory")
    direction: Direction = word(12, enum=Direction)


class EndTransfers(Command, number=44, name="END_TRANSFERS"):
    """Skips the rest of the area for transfers; the words are old ones."""

    words: bytes = rest(0, "s")


class CopyTransfer3d(Command, number=45, name="COPY_TRANSFER3D", needs="COPY_TRANSFER"):
    """Copies a box between a resource and another one's shared memory."""

    resource: int = word(0)
    level: int = word(1)
    usage: int = word(2, hex=True)
    stride: int = word(3)
    layer_stride: int = word(4)
    x: int = word(5)
    y: int = word(6)
    z: int = word(7)
    width: int = word(8)
    height: int = word(9)
    depth: int = word(10)
    src: int = word(11, doc="resource")
    src_offset: int = word(12)
    is_synchronized: bool = flag(13, 0)
    is_read: bool = flag(13, 1, doc="from the resource")
