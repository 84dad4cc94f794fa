"""What a client of the protocol does to draw: resources, objects, draws, pictures."""

import mmap
from typing import Any

import numpy as np
from tests.mesa.conftest import RawClient

from vc4lab.mesa.protocol import messages, objects, state_commands, work_commands
from vc4lab.mesa.protocol.codes import (
    BlendFactor,
    Compare,
    MipFilter,
    Primitive,
    Stage,
    StencilOp,
    Swizzle,
    Target,
    Wrap,
)
from vc4lab.mesa.protocol.command import BindObject, CreateObject
from vc4lab.mesa.protocol.formats import Format, layout_of

RGBA = Format.R8G8B8A8_UNORM
BGRA = Format.B8G8R8A8_UNORM
DEPTH = Format.X8Z24_UNORM
DEPTH_STENCIL = Format.S8_UINT_Z24_UNORM


class Drawing:
    """A client with handles that count up."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.memory: dict[int, mmap.mmap] = {}
        self.shapes: dict[int, tuple[Any, int, int]] = {}
        self._handle = 0

    def handle(self) -> int:
        """A new one."""
        self._handle += 1
        return self._handle

    # -- resources ---------------------------------------------------------------------------------

    def texture(
        self,
        width: int,
        height: int,
        format_: Any = RGBA,
        *,
        levels: int = 1,
        bind: int = 2 | 8,
        target: Target = Target.TEXTURE_2D,
        samples: int = 0,
    ) -> int:
        """A texture with its shared memory; one of several samples has none."""
        handle = self.handle()
        layout = layout_of(format_)
        assert layout is not None
        faces = 6 if target == Target.TEXTURE_CUBE else 1
        size = faces * sum(
            layout.row_bytes(max(width >> one, 1)) * layout.rows(max(height >> one, 1))
            for one in range(levels)
        )
        size = 0 if samples else size
        whole = target, format_, bind, width, height, levels - 1, size, faces, samples
        self._create(handle, *whole)
        self.shapes[handle] = format_, width, height
        return handle

    def buffer(self, data: bytes, bind: int = 16) -> int:
        """A buffer with these bytes."""
        handle = self.handle()
        self._create(handle, Target.BUFFER, Format.R8_UNORM, bind, len(data), 1, 0, len(data))
        self.memory[handle][:] = data
        self.client.send(messages.TransferPut2(handle, 0, 0, 0, 0, len(data), 1, 1, len(data), 0))
        return handle

    def _create(
        self,
        handle: int,
        target: Target,
        format_: Any,
        bind: int,
        width: int,
        height: int,
        last_level: int,
        size: int,
        layers: int = 1,
        samples: int = 0,
    ) -> None:
        self.client.send(
            messages.ResourceCreate2(
                handle=handle,
                target=target,
                format=format_,
                bind=bind,
                width=width,
                height=height,
                depth=1,
                array_size=layers,
                last_level=last_level,
                nr_samples=samples,
                data_size=size,
            )
        )
        if size:
            self.memory[handle] = self.client.memory(size)

    def put(
        self, handle: int, texels: np.ndarray[Any, Any], level: int = 0, x: int = 0, y: int = 0,
        z: int = 0,
    ) -> None:  # fmt: skip
        """Texels (rows, columns, …) into a box of a texture."""
        data = np.ascontiguousarray(texels).tobytes()
        format_, width, _ = self.shapes[handle]
        layout = layout_of(format_)
        assert layout is not None
        height, across = texels.shape[:2]
        across *= layout.block_width
        height *= layout.block_height
        row = layout.row_bytes(max(width >> level, 1))
        memory = self.memory[handle]
        step = len(data) // texels.shape[0]
        for number in range(texels.shape[0]):
            memory[number * row : number * row + step] = data[number * step : (number + 1) * step]
        size = (texels.shape[0] - 1) * row + step
        self.client.send(messages.TransferPut2(handle, level, x, y, z, across, height, 1, size, 0))
        self.client.wait()

    def get(self, handle: int, level: int = 0, z: int = 0) -> np.ndarray[Any, Any]:
        """A level of a texture as bytes (rows, columns, bytes of a texel)."""
        format_, width, height = self.shapes[handle]
        layout = layout_of(format_)
        assert layout is not None
        width, height = max(width >> level, 1), max(height >> level, 1)
        row, rows = layout.row_bytes(width), layout.rows(height)
        self.client.send(messages.TransferGet2(handle, level, 0, 0, z, width, height, 1, row * rows, 0))
        self.client.wait()
        found = np.frombuffer(self.memory[handle][: row * rows], np.uint8)
        return found.reshape(rows, row // layout.block_bytes, layout.block_bytes).copy()

    # -- objects and state -------------------------------------------------------------------------

    def create(self, state: objects.StateObject) -> int:
        """A state object."""
        handle = self.handle()
        self.client.submit(CreateObject(handle, state))
        return handle

    def bind(self, state: objects.StateObject) -> None:
        """A state object, bound."""
        self.client.submit(BindObject(state.kind, self.create(state)))

    def surface(self, texture: int, level: int = 0, layer: int = 0) -> int:
        """A level of a texture, to draw to."""
        format_ = self.shapes[texture][0]
        return self.create(objects.Surface(texture, format_, level, layer, layer))

    def target(self, colour: int = 0, depth: int = 0, level: int = 0) -> None:
        """What is drawn to, by textures."""
        colours = (self.surface(colour, level),) if colour else ()
        zs = self.surface(depth, level) if depth else 0
        self.client.submit(state_commands.SetFramebufferState(len(colours), zs, colours))

    def viewport(self, width: int, height: int, *, flipped: bool = False) -> None:
        """All of a target; flipped: as Mesa has it for windows."""
        sign = -1.0 if flipped else 1.0
        view = state_commands.Viewport((width / 2, sign * height / 2, 0.5), (width / 2, height / 2, 0.5))
        self.client.submit(state_commands.SetViewportState(0, (view,)))

    def defaults(self) -> None:
        """Nothing culled, tested or blended."""
        self.blend()
        self.rasterizer()
        self.depth()

    def blend(self, **changes: Any) -> None:
        """Blending; without changes there is none."""
        target = {"colormask": 15} | changes
        if target.get("blend_enable"):
            factors = ("rgb_src_factor", "rgb_dst_factor", "alpha_src_factor", "alpha_dst_factor")
            target = dict.fromkeys(factors, BlendFactor.ONE) | target
        one = objects.BlendTarget(**target)
        self.bind(objects.BlendState(rt=(one,) * 8))

    def rasterizer(self, **changes: Any) -> None:
        """Rasterizer state."""
        known = {"depth_clip": True, "half_pixel_center": True, "point_size": 1.0}
        self.bind(objects.RasterizerState(**{**known, "line_width": 1.0, **changes}))

    def depth(self, *stencil: objects.StencilFace, **changes: Any) -> None:
        """Depth, stencil and alpha test."""
        faces = [*stencil, *[objects.StencilFace()] * 2][:2]
        self.bind(objects.DepthStencilAlphaState(stencil=tuple(faces), **changes))

    def shaders(self, vertex: str, fragment: str) -> None:
        """Both shaders, as TGSI text."""
        for stage, text in ((Stage.VERTEX, vertex), (Stage.FRAGMENT, fragment)):
            data = text.encode() + b"\0"
            handle = self.handle()
            part = objects.ShaderPart(stage, len(data), False, 300, 0, data)
            self.client.submit(CreateObject(handle, part))
            self.client.submit(state_commands.BindShader(handle, stage))

    def constants(self, stage: Stage, values: Any) -> None:
        """Uniforms of a stage, as singles."""
        data = np.asarray(values, np.float32).tobytes()
        self.client.submit(state_commands.SetConstantBuffer(stage, 0, data))

    def sampled(self, texture: int, stage: Stage = Stage.FRAGMENT, **changes: Any) -> None:
        """A texture of a stage with its sampler: nearest texels, edges repeated."""
        format_ = self.shapes[texture][0]
        view = objects.SamplerView(
            resource=texture,
            format=format_,
            last_level=changes.pop("last_level", 0),
            first_level=changes.pop("first_level", 0),
            last_layer=changes.pop("last_layer", 0),
            swizzle_r=Swizzle.X,
            swizzle_g=Swizzle.Y,
            swizzle_b=Swizzle.Z,
            swizzle_a=Swizzle.W,
        )
        clamp = Wrap.CLAMP_TO_EDGE
        sampler = {"wrap_s": clamp, "wrap_t": clamp, "wrap_r": clamp} | changes
        sampler = {"min_mip_filter": MipFilter.NONE, "max_lod": 1000.0} | sampler
        handles = self.create(view), self.create(objects.SamplerState(**sampler))
        self.client.submit(
            state_commands.SetSamplerViews(stage, 0, (handles[0],)),
            state_commands.BindSamplerStates(stage, 0, (handles[1],)),
        )

    def vertices(self, data: np.ndarray[Any, Any], *sizes: int) -> None:
        """A buffer of singles (vertices, words): attributes of so many words, one after another."""
        rows = np.ascontiguousarray(data, np.float32)
        buffer = self.buffer(rows.tobytes())
        formats = {
            1: Format.R32_FLOAT,
            2: Format.R32G32_FLOAT,
            3: Format.R32G32B32_FLOAT,
            4: Format.R32G32B32A32_FLOAT,
        }
        elements, offset = [], 0
        for size in sizes:
            elements.append(objects.VertexElement(offset, 0, 0, formats[size]))
            offset += 4 * size
        self.bind(objects.VertexElements(tuple(elements)))
        bound = state_commands.VertexBuffer(rows.shape[1] * 4, 0, buffer)
        self.client.submit(state_commands.SetVertexBuffers((bound,)))

    # -- work --------------------------------------------------------------------------------------

    def clear(
        self, buffers: int, colour: tuple[float, ...] = (0, 0, 0, 0), depth: float = 1.0,
        stencil: int = 0,
    ) -> None:  # fmt: skip
        """Of the target's surfaces: depth 1, stencil 2, colour 4."""
        self.client.submit(work_commands.Clear(buffers, colour, depth, stencil))

    def draw(self, mode: Primitive, count: int, start: int = 0, **changes: Any) -> None:
        """So many vertices."""
        fields = {"instance_count": 1, "max_index": start + count - 1} | changes
        self.client.submit(work_commands.DrawVbo(start=start, count=count, mode=mode, **fields))

    def draw_indexed(self, mode: Primitive, indices: np.ndarray[Any, Any], **changes: Any) -> None:
        """Vertices by their indices."""
        buffer = self.buffer(indices.tobytes(), bind=32)
        self.client.submit(state_commands.SetIndexBuffer(buffer, indices.itemsize, 0))
        limits = {"min_index": int(indices.min()), "max_index": int(indices.max())}
        self.draw(mode, len(indices), 0, indexed=1, **(limits | changes))


def stencil_face(func: Compare, zpass: StencilOp, **changes: Any) -> objects.StencilFace:
    """A stencil test of all bits."""
    known = {"enabled": True, "func": func, "zpass_op": zpass, "valuemask": 255, "writemask": 255}
    return objects.StencilFace(**(known | changes))
