"""TGSI → QPU programs: the whole way of a shader.

    program = parse(text)
    compile_fragment(program, FragmentKey())
    compile_vertex(program, VertexKey(formats=(Format.R32G32B32_FLOAT,)))

Both raise TgsiError (the text asks for what is not there) or TooComplex (it does not fit the QPU).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vc4lab.driver.compiler.interface import (
    NO_ELEMENT,
    AttributeSlot,
    CompiledShader,
    CompiledVertex,
    FragmentKey,
    Stage,
    Varying,
    VertexKey,
    uniforms_of,
)
from vc4lab.driver.compiler.lower.fragment import Fragment
from vc4lab.driver.compiler.lower.values import Values
from vc4lab.driver.compiler.lower.vertex import Vertex, sizes_of
from vc4lab.driver.compiler.ssa.flatten import flatten
from vc4lab.driver.compiler.ssa.from_tgsi import to_ssa
from vc4lab.driver.compiler.ssa.loops import hoist, unroll
from vc4lab.driver.compiler.ssa.optimise import optimise
from vc4lab.driver.compiler.ssa.relax import relax
from vc4lab.driver.compiler.ssa.values import Block, Function
from vc4lab.driver.compiler.tgsi.program import File, Program, TgsiError
from vc4lab.driver.compiler.tgsi.window import with_distances, with_stipple, without_clipped
from vc4lab.qpu.machine.code import Op, Reg, TooComplex
from vc4lab.qpu.machine.output import Scheduled, end
from vc4lab.qpu.machine.policies import POLICIES, SPARING, Policy
from vc4lab.qpu.machine.schedule import SWITCH_DISTANCE, schedule
from vc4lab.qpu.machine.threads import in_parts

Made = TypeVar("Made", CompiledShader, CompiledVertex)
MOST_ARRAYS = 8
"""Attribute arrays of a shader record."""
LONGEST = 1 << 14
"""Instructions that a program may have."""
NEAR, EVERYWHERE = 8, 1 << 30
"""How many operations apart conditions share flags: where registers are short, and elsewhere."""
RELAXED = 2
"""How often inexact rules are applied; each time others come into reach."""


@dataclass(frozen=True)
class Choices:
    """Choices for listings and comparisons; draws have the defaults.

    Attributes
    ----------
    unrolls, has_threads
        Whether loops may be unrolled, and fragment programs may have two threads.
    mark
        Is given the shader in SSA form, as the text has it, and may change the lines of its values.
    """

    unrolls: bool = True
    has_threads: bool = True
    mark: Callable[[Function], None] | None = None


USUAL = Choices()


def compile_fragment(program: Program, key: FragmentKey, choices: Choices = USUAL) -> CompiledShader:
    """A fragment program."""
    program = without_clipped(program, key.clip_planes)
    if key.is_stippled:
        program = with_stipple(program)
    return _either_way(program, lambda function: _fragment(program, function, key, choices), choices)


def _fragment(program: Program, function: Function, key: FragmentKey, choices: Choices) -> CompiledShader:

    def lower(policy: Policy) -> Fragment:
        fragment = Fragment(program, function, key)
        _set_conditions(fragment, policy)
        fragment.run()
        return fragment

    made, done = _schedule(lower)
    threaded = _threaded(lower, done.cost) if choices.has_threads else None
    if threaded is not None:
        made, done = threaded
    assert isinstance(made, Fragment)
    return CompiledShader(
        Stage.FRAGMENT,
        tuple(end(done.words)),
        uniforms_of(done.uniforms),
        is_threaded=threaded is not None,
        varyings=tuple(made.varyings[op] for op in done.varyings if op in made.varyings),
        uses_discard=made.uses_discard,
        writes_depth=made.writes_depth,
        reads_color=made.reads_color,
        lines=_lines(done),
    )


def compile_vertex(program: Program, key: VertexKey, choices: Choices = USUAL) -> CompiledVertex:
    """A vertex program, and the coordinate program that is the part of it that binning needs."""
    program = with_distances(program, key.clip_planes)
    return _either_way(program, lambda function: _vertices(program, function, key), choices)


def _vertices(program: Program, function: Function, key: VertexKey) -> CompiledVertex:
    function = optimise(_only(function, _read_outputs(program, key, key.varyings)))
    sizes = sizes_of(program, function, key)
    vertex = _vertex(program, function, key, Stage.VERTEX, sizes)
    function = optimise(_only(function, _read_outputs(program, key, ())))
    fewer = {element: sizes[element] for element in sizes_of(program, function, key)}
    coordinate = _vertex(program, function, key, Stage.COORDINATE, fewer)
    return CompiledVertex(vertex, coordinate, _slots(sizes, fewer))


def _vertex(
    program: Program, function: Function, key: VertexKey, stage: Stage, sizes: dict[int, int]
) -> CompiledShader:
    """The program of one of the two stages, of a function with its outputs only."""

    def lower(policy: Policy) -> Values:
        vertex = Vertex(program, function, key, stage, sizes)
        _set_conditions(vertex, policy)
        vertex.run()
        return vertex

    _, done = _schedule(lower)
    return CompiledShader(
        stage,
        tuple(end(done.words)),
        uniforms_of(done.uniforms),
        varyings=key.varyings if stage is Stage.VERTEX else (),
        lines=_lines(done),
    )


def _either_way(program: Program, make: Callable[[Function], Made], choices: Choices) -> Made:
    """With unrolled loops; with loops as they are if that is too much. Raises TooComplex."""
    has_loops = choices.unrolls and any(one.operation.name == "BGNLOOP" for one in program.instructions)
    try:
        return make(_flat(program, choices, unrolls=has_loops))
    except (TooComplex, TgsiError):
        if not has_loops:
            raise
    return make(_flat(program, choices, unrolls=False))


def _flat(program: Program, choices: Choices, *, unrolls: bool) -> Function:
    """The shader in the form that is lowered. Raises TgsiError if it is too large."""
    function = to_ssa(program)
    if choices.mark is not None:
        choices.mark(function)
    function = optimise(function)
    flat = flatten(optimise(unroll(function)) if unrolls else function)
    for _ in range(RELAXED):
        relax(optimise(flat))
    return hoist(optimise(flat))


def _read_outputs(program: Program, key: VertexKey, varyings: Sequence[Varying]) -> set[tuple[int, int]]:
    """The outputs, by register and component, that a program must give."""
    wanted = {("POSITION", 0, component) for component in range(4)}
    if key.has_point_size:
        wanted.add(("PSIZE", 0, 0))
    wanted |= {(one.name, one.index, one.component) for one in varyings}
    found = set()
    for one in program.declarations:
        if one.file is not File.OUT or one.semantic is None:
            continue
        for number in range(one.first, one.last + 1):
            name, index = one.semantic.name, one.semantic.index + number - one.first
            found |= {(number, c) for c in range(4) if (name, index, c) in wanted}
    return found


def _only(function: Function, outputs: set[tuple[int, int]]) -> Function:
    """The function with these outputs, and no others."""
    for node in function.body:
        if isinstance(node, Block):
            node.values = [one for one in node.values if one.op != "output" or one.attributes in outputs]
    return function


def _slots(whole: dict[int, int], part: dict[int, int]) -> tuple[AttributeSlot, ...]:
    """Return the slot of each element, with its offsets for both programs."""
    slots = []
    offsets = [0, 0]
    for element in sorted(whole):
        size = 4 * whole[element]
        inside = element in part
        slots.append(AttributeSlot(element, size, offsets[0], offsets[1] if inside else None))
        offsets[0] += size
        offsets[1] += size * inside
    if len(slots) > MOST_ARRAYS:
        raise TooComplex(
            "TGSI-007",
            f"the vertex shader reads {len(slots)} arrays of the {MOST_ARRAYS} that there are, "
            "the vertices' numbers included",
        )
    if not whole:
        return (AttributeSlot(NO_ELEMENT, 4, 0, 0),)
    if not part:  # the coordinate program reads a word whose content does not matter
        slots[0] = slots[0].__class__(slots[0].element, slots[0].size, 0, 0)
    return tuple(slots)


def _set_conditions(values: Values, policy: Policy) -> None:
    values.reach = NEAR if policy.in_order else EVERYWHERE
    values.has_words = policy.has_words


def _schedule(lower: Callable[[Policy], Values]) -> tuple[Values, Scheduled]:
    """Lower and schedule: the best of several ways; in the order of the text if registers do not
    suffice.
    """
    found: tuple[Values, Scheduled] | None = None
    size = 0
    for policy in (*POLICIES, *SPARING):
        if found is not None and (policy in SPARING or size > policy.most):
            continue
        values = lower(policy)
        inputs: Sequence[tuple[Reg, int]] = getattr(values, "inputs", ())
        size = sum(len(block.ops) for block in values.code.blocks)
        try:
            done = schedule(values.code.blocks, inputs, half=False, policy=policy)
        except TooComplex:
            if policy is SPARING[-1]:
                raise
            continue
        if found is None or done.cost < found[1].cost:
            found = values, done
    assert found is not None
    if len(found[1].words) > LONGEST:
        raise TooComplex("TGSI-007", f"the program has {len(found[1].words)} instructions")
    return found


def _threaded(lower: Callable[[Policy], Values], most: int) -> tuple[Values, Scheduled] | None:
    """Lower and schedule with two threads, the best of several ways; None: it cannot be cut, does not fit
    half of the registers, or is longer than waiting for texels.

    most: the cost with one thread.
    """
    found: tuple[Values, Scheduled] | None = None
    for policy in (*POLICIES[:2], SPARING[0]):
        if found is not None and policy in SPARING:
            continue
        values = lower(policy)
        inputs: Sequence[tuple[Reg, int]] = getattr(values, "inputs", ())
        parts = in_parts(values.code.blocks)
        if parts is None:
            return None
        try:
            done = schedule(parts, inputs, half=True, policy=policy)
        except TooComplex:
            continue
        # Without a switch, each of these waits would be the processor's.
        limit = most + most // 8 + SWITCH_DISTANCE * (len(parts) - 1)
        if done.cost <= limit and (found is None or done.cost < found[1].cost):
            found = values, done
    return found


def _lines(done: Scheduled) -> tuple[tuple[int, ...], ...]:
    def of(ops: tuple[Op, ...]) -> tuple[int, ...]:
        return tuple(sorted({op.line for op in ops} - {0}))

    return tuple(of(ops) for ops in done.ops)
