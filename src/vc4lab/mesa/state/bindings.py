"""Holds a context's bindings: the state of its next draw, as parts that commands change."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.state.pipe import PipeState, Settings, StageState
from vc4lab.mesa.store.resources import Refused

if TYPE_CHECKING:
    from vc4lab.mesa.state.pipe import IndexBuffer, VertexBuffers

PIPE_DEFAULTS = dict(vars(PipeState()))
DRAWING_STAGES = (Stage.VERTEX, Stage.FRAGMENT)
_PARTS = tuple(
    name for name in PIPE_DEFAULTS if name not in ("vertex", "fragment", "vertex_buffers", "index_buffer")
)
_OF_STAGE = attrgetter("shader", "views", "samplers")


class Bindings:
    """The bindings of a context. Raises Refused where there are not so many slots."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}
        """Members that differ from the defaults of `PipeState`."""
        self._stages = {stage: StageState() for stage in DRAWING_STAGES}
        self._state: PipeState | None = None
        self._key: tuple[Any, ...] | None = None
        """`bound_key`, until something else is bound."""

    @property
    def state(self) -> PipeState:
        """The state of the next draw."""
        if self._state is None:
            vertex, fragment = self._stages[Stage.VERTEX], self._stages[Stage.FRAGMENT]
            # Some thousand of them are made for a frame: quicker than by their constructor.
            self._state = object.__new__(PipeState)
            self._state.__dict__.update(PIPE_DEFAULTS, **self._parts, vertex=vertex, fragment=fragment)
        return self._state

    @property
    def constants(self) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
        """The constant buffers of both stages."""
        return self._stages[Stage.VERTEX].constants, self._stages[Stage.FRAGMENT].constants

    @property
    def has_plain_constants(self) -> bool:
        """Whether no stage has more than constant buffer 0."""
        vertex, fragment = self.constants
        return len(vertex) <= 1 and len(fragment) <= 1

    @property
    def vertex_buffers(self) -> VertexBuffers:
        """Those that are bound."""
        found: VertexBuffers = self._parts.get("vertex_buffers", ())
        return found

    @property
    def index_buffer(self) -> IndexBuffer | None:
        """The one that is bound."""
        return self._parts.get("index_buffer")

    def bound_key(self) -> tuple[Any, ...]:
        """Return the bindings but for constants and offsets of buffers, as ids of the objects."""
        if self._key is None:
            self._key = self._make_key()
        return self._key

    def _make_key(self) -> tuple[Any, ...]:
        parts = map(self._parts.get, _PARTS)
        stages = map(_OF_STAGE, self._stages.values())
        buffers = [
            None if one is None else (one.state.stride, one.state.resource, id(one.resource))
            for one in self.vertex_buffers
        ]
        indices = self.index_buffer
        of_indices = None if indices is None else (indices.index_size, id(indices.resource))
        return (*map(_identity, (*parts, *chain.from_iterable(stages))), of_indices, *buffers)

    def bound(self) -> Settings:
        """The settings as they are."""
        vertex, fragment = (replace(self._stages[one], constants=()) for one in DRAWING_STAGES)
        return Settings(dict(self._parts), vertex, fragment, self.bound_key())

    def put_settings(self, settings: Settings, buffers: VertexBuffers, indices: IndexBuffer | None) -> None:
        """Bind these, with the same buffers at their offsets; constants stay."""
        self._parts = dict(settings.parts)
        if buffers:
            self._parts["vertex_buffers"] = buffers
        if indices is not None:
            self._parts["index_buffer"] = indices
        stages = settings.vertex, settings.fragment
        for stage, one in zip(DRAWING_STAGES, stages, strict=True):
            self._stages[stage] = replace(one, constants=self._stages[stage].constants)
        self._state, self._key = None, settings.key

    def put_constants(self, stage: Stage, values: bytes) -> None:
        """Constant buffer 0 of a stage, the only one it has then."""
        key = self._key  # constants are no part of it
        self._put(stage, {"constants": (values,)})
        self._key = key

    def _set(self, name: str, value: Any) -> None:
        if self._parts.get(name, self) is not value:
            self._parts[name] = value
            self._state = self._key = None

    def _replace(self, name: str, first: int, values: tuple[Any, ...], most: int) -> None:
        """Put values into a tuple from slot `first` on."""
        self._set(name, _with(self._parts.get(name, ()), first, values, None, most))

    def _replace_in(self, stage: Stage, name: str, first: int, values: tuple[Any, ...], empty: Any) -> None:
        """Put values into a tuple of a stage; other stages than those that draw are ignored."""
        known = self._stages.get(stage)
        if known is not None:
            most = max(limits.SAMPLERS, limits.CONSTANT_BUFFERS)
            old = getattr(known, name)
            value = _with(old, first, values, empty, most)
            if value is not old:
                self._put(stage, {name: value})

    def _put(self, stage: Stage, changed: dict[str, Any]) -> None:
        """Change parts of a stage."""
        made = object.__new__(StageState)
        made.__dict__.update(self._stages[stage].__dict__, **changed)
        self._stages[stage] = made
        self._state = self._key = None


def _identity(value: Any) -> Any:
    """Return a key that is equal for equal values: slots are filled into new tuples of the same objects."""
    return tuple(map(id, value)) if type(value) is tuple else id(value)


def _with(
    old: tuple[Any, ...], first: int, values: tuple[Any, ...], empty: Any, most: int
) -> tuple[Any, ...]:
    if first + len(values) > most:
        raise Refused("GL-006", f"{len(values)} slots from {first} on, but there are {most}")
    if not first and len(values) == len(old) and values == old:
        return old
    if not first and len(values) >= len(old) and values and values[-1] != empty:
        return values
    slots = list(old)
    slots += [empty] * (first + len(values) - len(slots))
    slots[first : first + len(values)] = values
    while slots and slots[-1] == empty:
        slots.pop()
    return tuple(slots)
