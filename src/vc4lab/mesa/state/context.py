"""A context of a client: its objects, and what each command does.

The method that handles a command has the command's name in lower case. Commands that only set state
end in what is bound (`bindings.py`); those that do something go on to the `Screen`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from vc4lab.bounded import Bounded
from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol import objects as declared
from vc4lab.mesa.protocol.codes import Direction, ObjectKind, Stage
from vc4lab.mesa.protocol.command import BindObject, Command, CreateObject, DestroyObject
from vc4lab.mesa.protocol.objects import ShaderPart
from vc4lab.mesa.state.bindings import Bindings
from vc4lab.mesa.state.pipe import (
    INDEX_SIZES,
    BoundQuery,
    BoundSurface,
    BoundVertices,
    BoundView,
    Framebuffer,
    IndexBuffer,
    Shader,
)
from vc4lab.mesa.state.steps import StreamWalk
from vc4lab.mesa.store.resources import Box, Refused, Resource
from vc4lab.mesa.store.screen import Transfer

if TYPE_CHECKING:
    from vc4lab.mesa.protocol import state_commands as settings
    from vc4lab.mesa.protocol import work_commands as work
    from vc4lab.mesa.store.screen import Screen


class ShaderTexts:
    """The texts of a context that are not complete."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Stage, int, bytearray]] = {}

    def add(self, handle: int, part: ShaderPart) -> Shader | None:
        """The shader if this part completes it. Raises Refused."""
        if part.is_continuation:
            known = self._open.pop(handle, None)
            if known is None:
                raise Refused("GL-004", f"shader {handle} is continued, but has no beginning")
            stage, size, text = known
            if part.stage != stage or part.offset != len(text):
                raise Refused(
                    "GL-002", f"shader {handle} is continued at byte {part.offset}, not {len(text)}"
                )
        else:
            stage, size, text = part.stage, part.offset, bytearray()
            self._open.pop(handle, None)
            if not 1 <= size <= limits.SHADER_BYTES:
                raise Refused("GL-006", f"shader {handle} has {size} bytes")
        text += part.part[: size - len(text)]
        if len(text) < size:
            if len(self._open) >= limits.CONTEXTS:
                raise Refused("GL-006", "too many shaders are not complete")
            self._open[handle] = stage, size, text
            return None
        return Shader(stage, bytes(text).partition(b"\0")[0].decode("ascii", "replace"))

    def forget(self, handle: int) -> None:
        """The object is destroyed."""
        self._open.pop(handle, None)


_QUERY_DONE = struct.Struct("<IIQ")
_STATES = {
    ObjectKind.BLEND: ("blend", declared.BlendState),
    ObjectKind.RASTERIZER: ("rasterizer", declared.RasterizerState),
    ObjectKind.DSA: ("dsa", declared.DepthStencilAlphaState),
    ObjectKind.VERTEX_ELEMENTS: ("vertex_elements", declared.VertexElements),
}
"""Kinds that BIND_OBJECT binds, and the part of `PipeState` that they are."""
MOST_GIVEN = 1 << 12


class Resources(Protocol):
    """A client's resources."""

    def get(self, handle: int) -> Resource | None:
        """The one with a handle. Raises Refused."""


class Context(Bindings):
    """One context. `resources` are the client's, which all of its contexts share.

    Attributes
    ----------
    number
        The client's for it.
    objects
        By the client's handle; all kinds have one space of handles.
    named
        Handles that the last command has looked up, and whether as objects.
    """

    def __init__(self, screen: Screen, resources: Resources, number: int = 0) -> None:
        super().__init__()
        self.screen = screen
        self.number = number
        self.resources = resources
        self.objects: dict[int, Any] = {}
        self._texts = ShaderTexts()
        self._begun: dict[int, int] = {}
        self._given: Bounded[int, tuple[Command, Any]] = Bounded(MOST_GIVEN)
        """Commands that set something, and what they have set, by their ids."""
        self.named: set[tuple[int, bool]] = set()

    @cached_property
    def walk(self) -> StreamWalk:
        """The known steps of the context's streams."""
        return StreamWalk(self)

    def execute(self, command: Command) -> None:
        """Do what a command says. Raises Refused."""
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise Refused("GL-007", f"{command.name}: needs {command.needs}, which the capabilities have not")
        self.named.clear()
        handler(self, command)

    # -- objects -----------------------------------------------------------------------------------

    def create_object(self, command: CreateObject) -> None:
        state, handle = command.state, command.handle
        if not handle:
            raise Refused("GL-004", f"CREATE_OBJECT {state.kind.name}: 0 is no handle")
        if len(self.objects) >= limits.OBJECTS and handle not in self.objects:
            raise Refused("GL-006", f"a context has more than {limits.OBJECTS} objects")
        if state.needs:
            raise Refused("GL-007", f"{state.kind.name}: needs {state.needs}")
        made: Any = state
        if isinstance(state, declared.ShaderPart):
            made = self._texts.add(handle, state)
            if made is None:
                return
        elif isinstance(state, declared.Surface):
            made = self._surface(state)
        elif isinstance(state, declared.SamplerView):
            made = BoundView(state, self._resource(state.resource))
        elif isinstance(state, declared.Query):
            made = BoundQuery(state, self._resource(state.resource))
        if handle in self.objects:
            self.gone(handle, is_object=True)
        self.objects[handle] = made

    def _surface(self, state: declared.Surface) -> BoundSurface:
        resource = self._resource(state.resource)
        level = resource.level(state.level)
        if not state.first_layer <= state.last_layer < level.layers:
            raise Refused("GL-005", f"{resource} has no layer {state.last_layer}")
        return BoundSurface(state, resource)

    def bind_object(self, command: BindObject) -> None:
        known = _STATES.get(command.object)
        if known is None:
            raise Refused("GL-004", f"BIND_OBJECT: objects of kind {command.object} are not bound")
        name, kind = known
        self._set(name, self._object(command.handle, kind))

    def destroy_object(self, command: DestroyObject) -> None:
        self._texts.forget(command.handle)
        self._begun.pop(command.handle, None)
        self.gone(command.handle, is_object=True)
        if self.objects.pop(command.handle, None) is None:
            raise Refused("GL-004", f"DESTROY_OBJECT: there is no object {command.handle}")

    # -- state -------------------------------------------------------------------------------------

    def set_viewport_state(self, command: settings.SetViewportState) -> None:
        self._replace("viewports", command.start_slot, command.viewports, limits.VIEWPORTS)

    def set_scissor_state(self, command: settings.SetScissorState) -> None:
        self._replace("scissors", command.start_slot, command.scissors, limits.VIEWPORTS)

    def set_framebuffer_state(self, command: settings.SetFramebufferState) -> None:
        if command.nr_cbufs != len(command.cbufs):
            count = len(command.cbufs)
            raise Refused("GL-002", f"{command.name}: {command.nr_cbufs} surfaces, but {count} came")
        surfaces = [self._object(handle, BoundSurface) for handle in command.cbufs]
        depth = self._object(command.zsbuf, BoundSurface)
        self._set("framebuffer", self._same(command, Framebuffer(tuple(surfaces), depth)))

    def set_vertex_buffers(self, command: settings.SetVertexBuffers) -> None:
        bound = tuple([
            BoundVertices(one, self._resource(one.resource)) if one.resource else None
            for one in command.buffers
        ])  # fmt: skip
        self._set("vertex_buffers", self._same(command, bound))

    def set_index_buffer(self, command: settings.SetIndexBuffer) -> None:
        if not command.resource:
            self._set("index_buffer", None)
            return
        resource = self._resource(command.resource)
        if command.index_size not in INDEX_SIZES:
            raise Refused("GL-002", f"{command.name}: indices of {command.index_size} bytes")
        bound = IndexBuffer(resource, command.index_size, command.offset)
        self._set("index_buffer", self._same(command, bound))

    def set_constant_buffer(self, command: settings.SetConstantBuffer) -> None:
        if len(command.values) > limits.CONSTANT_WORDS * 4:
            raise Refused("GL-006", f"{command.name}: {len(command.values)} bytes of uniforms")
        self._replace_in(command.stage, "constants", command.index, (command.values,), b"")

    def set_sampler_views(self, command: settings.SetSamplerViews) -> None:
        views = tuple([self._object(handle, BoundView) for handle in command.views])
        self._replace_in(command.stage, "views", command.start_slot, views, None)

    def bind_sampler_states(self, command: settings.BindSamplerStates) -> None:
        kind = declared.SamplerState
        states = tuple(self._object(handle, kind) for handle in command.states)
        self._replace_in(command.stage, "samplers", command.start_slot, states, None)

    def bind_shader(self, command: settings.BindShader) -> None:
        shader = self._object(command.handle, Shader)
        if shader is not None and shader.stage != command.stage:
            raise Refused("GL-004", f"{command.name}: shader {command.handle} is for {shader.stage}")
        if command.stage in self._stages:
            self._put(command.stage, {"shader": shader})
        elif shader is not None:
            raise Refused("GL-007", f"{command.name}: shaders for {command.stage}")

    def link_shader(self, command: settings.LinkShader) -> None:
        for handle in (command.vertex, command.fragment):
            self._object(handle, Shader)

    def set_stencil_ref(self, command: settings.SetStencilRef) -> None:
        self._set("stencil_ref", command)

    def set_blend_color(self, command: settings.SetBlendColor) -> None:
        self._set("blend_color", command.color)

    def set_clip_state(self, command: settings.SetClipState) -> None:
        self._set("ucp", command.ucp)

    def set_polygon_stipple(self, command: settings.SetPolygonStipple) -> None:
        self._set("stipple", command.stipple)

    def set_sample_mask(self, command: settings.SetSampleMask) -> None:
        self._set("sample_mask", command)

    # -- work --------------------------------------------------------------------------------------

    def nop(self, command: Command) -> None:
        pass

    end_transfers = nop

    def clear(self, command: work.Clear) -> None:
        self.screen.clear(self.state.framebuffer, command)

    def draw_vbo(self, command: work.DrawVbo) -> None:
        if command.indirect or command.count_from_stream_output:
            raise Refused("GL-007", "DRAW_VBO: indirect draws were not announced")
        self.screen.draw(self.state, command)

    def blit(self, command: work.Blit) -> None:
        self.screen.blit(command, self._resource(command.dst), self._resource(command.src))

    def resource_copy_region(self, command: work.ResourceCopyRegion) -> None:
        target, source = self._resource(command.dst), self._resource(command.src)
        self.screen.copy_region(command, target, source)

    def resource_inline_write(self, command: work.ResourceInlineWrite) -> None:
        resource = self._resource(command.resource)
        strides = command.stride, command.layer_stride
        self.screen.write(resource, command.level, box_of(command), command.data, strides)

    def transfer3d(self, command: work.Transfer3d) -> None:
        resource = self._resource(command.resource)
        place = command.offset, command.stride, command.layer_stride
        transfer = Transfer(resource, command.level, box_of(command), resource, *place)
        if command.direction == Direction.TO_HOST:
            self.screen.upload(transfer)
        else:
            self.screen.download(transfer)

    def copy_transfer3d(self, command: work.CopyTransfer3d) -> None:
        resource, memory = self._resource(command.resource), self._resource(command.src)
        place = command.src_offset, command.stride, command.layer_stride
        transfer = Transfer(resource, command.level, box_of(command), memory, *place)
        if command.is_read:
            self.screen.download(transfer)
        else:
            self.screen.upload(transfer)

    def begin_query(self, command: work.BeginQuery) -> None:
        query = self._query(command.handle)
        self._begun[command.handle] = self.screen.begin_query(query)

    def end_query(self, command: work.EndQuery) -> None:
        query = self._query(command.handle)
        result = self.screen.end_query(query, self._begun.pop(command.handle, None))
        self._answer(query, result)

    def get_query_result(self, command: work.GetQueryResult) -> None:
        """The answer is there since the query ended."""
        self._query(command.handle)

    def _answer(self, query: BoundQuery, result: int) -> None:
        """Into the query's shared memory: done, the size of the result, the result."""
        staging, offset = query.resource.staging, query.state.offset
        if staging is None or offset + _QUERY_DONE.size > staging.size:
            raise Refused("GL-005", f"{query.resource} has no room for a query's result")
        _QUERY_DONE.pack_into(staging.memory, offset, 1, 8, result & (1 << 64) - 1)

    # -- looking up --------------------------------------------------------------------------------

    def _resource(self, handle: int) -> Resource:
        self.named.add((handle, False))
        resource = self.resources.get(handle)
        if resource is None:
            raise Refused("GL-004", f"there is no resource {handle}")
        return resource

    def _object(self, handle: int, kind: type[Any]) -> Any:
        """An object of a kind; None for handle 0. Raises Refused."""
        if not handle:
            return None
        self.named.add((handle, True))
        found = self.objects.get(handle)
        if not isinstance(found, kind):
            has = "there is none" if found is None else f"it is a {type(found).__name__}"
            raise Refused("GL-004", f"object {handle} should be a {kind.__name__}, but {has}")
        return found

    def _query(self, handle: int) -> BoundQuery:
        query = self._object(handle, BoundQuery)
        if query is None:
            raise Refused("GL-004", "0 is no query")
        found: BoundQuery = query
        return found

    def _same(self, command: Command, value: Any) -> Any:
        """The object that the command gave before, if it is equal: what is kept by objects stays.

        Equal commands of the stream are mostly one object (`protocol/stream.py`).
        """
        known = self._given.get(id(command))
        if known is not None and known[0] is command and known[1] == value:
            return known[1]
        self._given[id(command)] = command, value
        return value

    def forget(self) -> None:
        """A resource goes: nothing may keep it but what is bound."""
        self._given.clear()

    def gone(self, handle: int, *, is_object: bool = False) -> None:
        """A handle is free, or stands for another object or resource from now on."""
        if "walk" in self.__dict__:
            self.walk.gone(handle, is_object=is_object)


def box_of(command: Any) -> Box:
    """The box that a command or a message has."""
    size = command.width, command.height, command.depth
    return Box(command.x, command.y, command.z, *size)


def _handlers() -> dict[type[Command], Callable[[Context, Any], None]]:
    from vc4lab.mesa.protocol.commands import COMMANDS

    found = {}
    for kind in COMMANDS.values():
        handler = getattr(Context, kind.name.lower(), None)
        if handler is not None:
            found[kind] = handler
    return found


_HANDLERS = _handlers()
"""The method of each command that this server executes."""
