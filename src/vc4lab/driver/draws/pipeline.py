"""Compiles the fixed part of a draw's state: keys, programs, and what follows from them.

Kept by the state objects themselves: the same objects are the same pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vc4lab.bounded import Bounded
from vc4lab.driver.compiler.interface import (
    ALL_SAMPLES,
    ColorTarget,
    FragmentKey,
    Primitives,
    TextureKey,
    UniformKind,
    VertexKey,
)
from vc4lab.driver.draws.state_records import stencil_words
from vc4lab.driver.draws.textures import texture_key
from vc4lab.driver.draws.uniforms import StreamPlan, stream_plan
from vc4lab.driver.draws.vertices import SINGLE, ShaderRecords
from vc4lab.mesa.protocol.codes import Compare, Primitive
from vc4lab.mesa.store.resources import Refused

if TYPE_CHECKING:
    from vc4lab.driver.draws.programs import PlacedFragment, PlacedVertex, Programs
    from vc4lab.driver.frames.target import FrameTarget
    from vc4lab.mesa.state.pipe import PipeState, StageState

MAX_KNOWN = 4096


class IdentityCache:
    """Values by objects that stay the same, which it keeps alive as long."""

    def __init__(self) -> None:
        self._values: Bounded[tuple[Any, ...], tuple[tuple[Any, ...], Any]] = Bounded(MAX_KNOWN)

    def get(self, objects: tuple[Any, ...], plain: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The value for these very objects and equal plain values."""
        key = (*map(id, objects), *plain)
        known = self._values.get(key)
        if known is None:
            known = self._values[key] = objects, make()
        return known[1]

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()


@dataclass(frozen=True, eq=False)
class Pipeline:
    """The programs of a draw.

    Attributes
    ----------
    stencil
        The set-up words that its fragment program writes.
    records
        Its shader records.
    streams
        Uniform streams of fragment, vertex and coordinate program.
    numbers_instances
        Whether those of vertices are not the same for each instance.
    """

    fragment: PlacedFragment
    vertex: PlacedVertex
    fragment_key: FragmentKey
    vertex_key: VertexKey
    stencil: tuple[int, ...]
    records: ShaderRecords
    streams: tuple[StreamPlan, StreamPlan, StreamPlan]
    numbers_instances: bool = False


def kind_of(mode: Primitive) -> Primitives:
    """The kind of primitive that is drawn, after strips and fans are taken apart."""
    if mode == Primitive.POINTS:
        return Primitives.POINTS
    is_line = mode in (Primitive.LINES, Primitive.LINE_LOOP, Primitive.LINE_STRIP)
    return Primitives.LINES if is_line else Primitives.TRIANGLES


def make_pipeline(state: PipeState, target: FrameTarget, kind: Primitives, programs: Programs) -> Pipeline:
    """The programs of a state. Raises Refused, CompileError, OutOfMemory."""
    vertex_shader, fragment_shader = state.vertex.shader, state.fragment.shader
    assert state.rasterizer is not None
    if vertex_shader is None or fragment_shader is None:
        raise Refused("GL-015", "a draw without a vertex and a fragment shader")
    rasterizer = state.rasterizer
    stencil = stencil_of(state, target)
    is_points = kind is Primitives.POINTS
    planes = rasterizer.clip_plane_enable
    fragment_key = FragmentKey(
        color=color_target(state, target),
        writes_z=bool(stencil) or tests_depth(state, target),
        stencil_words=len(stencil),
        alpha_test=alpha_test(state),
        primitives=kind,
        sprite_coords=rasterizer.sprite_coord_enable if is_points else 0,
        sprite_origin_is_lower=is_points and bool(rasterizer.sprite_coord_mode),
        is_two_sided=rasterizer.light_twoside and kind is Primitives.TRIANGLES,
        clip_planes=planes,
        sample_mask=sample_mask(state, target),
        alpha_to_coverage=is_multisampled(state, target) and has_alpha_to_coverage(state),
        is_stippled=rasterizer.poly_stipple_enable and kind is Primitives.TRIANGLES,
        textures=texture_keys(state.fragment),
    )
    fragment = programs.fragment(fragment_shader.text, fragment_key)
    elements = state.vertex_elements.elements if state.vertex_elements is not None else ()
    vertex_key = VertexKey(
        formats=tuple(SINGLE.get(int(one.src_format), int(one.src_format)) for one in elements),
        varyings=fragment.shader.varyings,
        has_point_size=is_points and rasterizer.point_size_per_vertex and "PSIZE" in vertex_shader.text,
        clip_planes=planes,
        textures=texture_keys(state.vertex),
    )
    vertex = programs.vertex(vertex_shader.text, vertex_key)
    compiled = vertex.compiled
    return Pipeline(
        fragment,
        vertex,
        fragment_key,
        vertex_key,
        stencil,
        ShaderRecords(fragment, vertex, has_point_size=vertex_key.has_point_size),
        (stream_plan(fragment.shader), stream_plan(compiled.vertex), stream_plan(compiled.coordinate)),
        any(
            one.kind is UniformKind.INSTANCE
            for program in (compiled.vertex, compiled.coordinate)
            for one in program.uniforms
        ),
    )


def color_target(state: PipeState, target: FrameTarget) -> ColorTarget | None:
    """Describe what becomes of colours; None if none are written."""
    blend = state.blend
    if target.colour is None:
        return None
    if blend is None:
        return ColorTarget(target.order, is_srgb=target.is_srgb, is_sampled=target.is_sampled)
    first = blend.rt[0]
    # What the buffer does not have need not be kept.
    mask = first.colormask | (8 if "a" not in target.order else 0)
    if not first.colormask & (15 if "a" in target.order else 7):
        return None
    return ColorTarget(
        order=target.order,
        blend=first if first.blend_enable and not blend.logicop_enable else None,
        colormask=mask,
        logic_op=blend.logicop_func if blend.logicop_enable else None,
        alpha_to_one=blend.alpha_to_one,
        is_srgb=target.is_srgb,
        is_sampled=target.is_sampled,
    )


def is_multisampled(state: PipeState, target: FrameTarget) -> bool:
    """Whether samples are drawn each for itself."""
    return target.is_sampled and state.rasterizer is not None and state.rasterizer.multisample


def has_alpha_to_coverage(state: PipeState) -> bool:
    """Whether alpha says how many samples are drawn."""
    return state.blend is not None and state.blend.alpha_to_coverage


def sample_mask(state: PipeState, target: FrameTarget) -> int:
    """The samples that may be drawn."""
    return state.sample_mask.mask & ALL_SAMPLES if is_multisampled(state, target) else ALL_SAMPLES


def tests_depth(state: PipeState, target: FrameTarget) -> bool:
    """Whether the depth test is on and there is a depth buffer."""
    return state.dsa is not None and state.dsa.depth_enabled and target.depth is not None


def stencil_of(state: PipeState, target: FrameTarget) -> tuple[int, ...]:
    """The stencil set-up words of a draw."""
    if state.dsa is None or not target.has_stencil:
        return ()
    return stencil_words(state.dsa, state.stencil_ref)


def alpha_test(state: PipeState) -> Compare | None:
    """The function of the alpha test, None if all pass."""
    dsa = state.dsa
    if dsa is None or not dsa.alpha_enabled or dsa.alpha_func == Compare.ALWAYS:
        return None
    return dsa.alpha_func


NO_TEXTURE = TextureKey()


def texture_keys(stage: StageState) -> tuple[TextureKey, ...]:
    """A key for each texture of a stage. Raises Refused."""
    keys = []
    for number, view in enumerate(stage.views):
        sampler = stage.samplers[number] if number < len(stage.samplers) else None
        if view is None or sampler is None:
            keys.append(NO_TEXTURE)
        else:
            key = texture_key(view.state, sampler, view.state.format)
            keys.append(replace(key, is_sampled=True) if view.resource.samples > 1 else key)
    return tuple(keys)
