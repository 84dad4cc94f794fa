"""The global scheduler: deals work out to the clusters of a chip, one for each list thread.

The control list executor (the command processor of such a chip) names groups of vertices, tiles,
and what is to be done in each tile, in their order. For thread 0 batches of vertices go to clusters
one by one in turn; one whose queue is full is passed over. For thread 1 a tile goes to the next
cluster in turn that may have another one, and all of its vertices, primitives and operations go
there. Source: the organisation of the article's simulator (docs/clusters.md); how work is dealt
out is assumed.
"""

from __future__ import annotations

from vc4lab.simd import Value, call, const, i32, i64, kernel, load, ptr, select, staged, store
from vc4lab.timing.event_scheduler import (
    Engine,
    count_busy,
    instance_of,
    number_of,
    state_of,
    wake,
    wake_self,
)
from vc4lab.timing.graphics.clusters.state import GlobalScheduler
from vc4lab.timing.graphics.kinds import GraphicsModule, GraphicsQueue
from vc4lab.timing.graphics.state import GraphicsFigures, StepKind
from vc4lab.timing.graphics.vertices.state import BINNING, RENDERING
from vc4lab.timing.graphics.vertices.vertex_cache import the_cache
from vc4lab.timing.queues import (
    QueueState,
    first_piece,
    may_take,
    queue_at,
    remove_piece,
    wait_for_room,
    write_piece,
)


@staged
def command(engine: Engine, thread: int, kind: Value, number: Value, clock: Value) -> Value:
    """Gives a piece of a list thread to the global scheduler (1), or waits for room (0)."""
    queue = queue_at(engine, GraphicsQueue.COMMANDS, const(i32, thread))
    return call(
        write_piece,
        engine.pointer, queue.pointer, clock, clock + 1,
        const(i64, thread), number.sext(i64), kind.sext(i64),
    )  # fmt: skip


@staged
def tile_is_done(engine: Engine, cluster: Value, clock: Value) -> None:
    """A cluster may have another tile, if the chip has clusters."""
    if GraphicsFigures.at(engine.chip).dealt != 0:
        instance = instance_of(engine, GraphicsModule.GLOBAL_SCHEDULER, const(i32, RENDERING))
        dealer = GlobalScheduler.at(state_of(engine, instance), 8)
        place = dealer.tiles + (cluster << 2)
        store(place, load(i32, place) - 1)
        wake(engine, instance, clock)


@staged
def _after(engine: Engine, cluster: Value) -> Value:
    """The next cluster in turn."""
    following = cluster + 1
    count = GraphicsFigures.at(engine.chip).compute.clusters
    return select(following >= count, const(i32, 0), following)


@staged
def _write(
    engine: Engine, dealer: GlobalScheduler, queue: QueueState, place: Value, tag: Value,
    clock: Value,
) -> Value:  # fmt: skip
    """Writes a piece to a queue of a cluster (1), or waits for room (0)."""
    wrote = call(
        write_piece,
        engine.pointer, queue.pointer, clock, clock + dealer.latency,
        const(i64, 0), place, tag,
    )  # fmt: skip
    if wrote != 0:
        _worked(engine, dealer, clock)
    return wrote


@staged
def _worked(engine: Engine, dealer: GlobalScheduler, clock: Value) -> None:
    """A piece is dealt; the next one can be after the interval."""
    dealer.free_at = clock + dealer.interval
    count_busy(engine, dealer.interval)
    wake_self(engine, dealer.free_at)


@staged
def _count(dealer: GlobalScheduler, cluster: Value) -> None:
    place = dealer.dealt + (cluster.sext(i64) << 3)
    store(place, load(i64, place) + 1)


# -- thread 0: batches


@staged
def _deal_batch(engine: Engine, dealer: GlobalScheduler, clock: Value) -> None:
    """The next batch goes to the next cluster in turn whose queue has room."""
    clusters = GraphicsFigures.at(engine.chip).compute.clusters
    chosen: Value = _after(engine, dealer.cluster)
    for _ in range(clusters):
        queue = queue_at(engine, GraphicsQueue.BINNING_GROUPS, chosen)
        if queue.count >= queue.capacity:
            wait_for_room(engine, queue)
            chosen = _after(engine, chosen)
    queue = queue_at(engine, GraphicsQueue.BINNING_GROUPS, chosen)
    batch = dealer.batch.sext(i64)
    if _write(engine, dealer, queue, batch, batch + 1, clock) != 0:
        dealer.batch = dealer.batch + 1
        dealer.cluster = chosen
        _count(dealer, chosen)


@staged
def _deal_vertices(engine: Engine, dealer: GlobalScheduler, clock: Value) -> None:
    commands = queue_at(engine, GraphicsQueue.COMMANDS, const(i32, BINNING))
    if dealer.batch >= dealer.end:
        if may_take(engine, commands, dealer.free_at, clock) != 0:
            group = the_cache(engine).binning.first_batch + (first_piece(commands).place << 2)
            call(remove_piece, engine.pointer, commands.pointer, clock)
            dealer.batch = load(i32, group)
            dealer.end = load(i32, group + 4)
    if dealer.batch < dealer.end:
        if clock < dealer.free_at:
            wake_self(engine, dealer.free_at)
        else:
            _deal_batch(engine, dealer, clock)


# -- thread 1: tiles


@staged
def _deal_tile(engine: Engine, dealer: GlobalScheduler, clock: Value) -> Value:
    """A tile begins: the next cluster in turn that may have another one (1; 0: there is none)."""
    figures = GraphicsFigures.at(engine.chip)
    chosen: Value = dealer.cluster
    done = const(i32, 0)
    for _ in range(figures.compute.clusters):
        if done == 0:
            chosen = _after(engine, chosen)
            place = dealer.tiles + (chosen << 2)
            if load(i32, place) < figures.raster.list_tiles:
                store(place, load(i32, place) + 1)
                done = const(i32, 1)
    if done != 0:
        dealer.cluster = chosen
        _count(dealer, chosen)
        _worked(engine, dealer, clock)
    return done


@staged
def _deal_rendering(engine: Engine, dealer: GlobalScheduler, clock: Value) -> None:
    """The next command of thread 1."""
    commands = queue_at(engine, GraphicsQueue.COMMANDS, const(i32, RENDERING))
    if may_take(engine, commands, dealer.free_at, clock) != 0:
        piece = first_piece(commands)
        kind, number = piece.tag, piece.place
        done = const(i32, 0)
        if kind == int(StepKind.TILE):
            done = _deal_tile(engine, dealer, clock)
        for which, name in (
            (StepKind.WORK, GraphicsQueue.TILE_WORK),
            (StepKind.GROUP, GraphicsQueue.RENDERING_GROUPS),
            (StepKind.LIST, GraphicsQueue.PRIMITIVES),
        ):
            if kind == int(which):
                queue = queue_at(engine, name, dealer.cluster)
                first = const(i64, 0)
                if which == StepKind.LIST:
                    first = dealer.first_batch.sext(i64)
                done = _write(engine, dealer, queue, number, first, clock)
        if (kind == int(StepKind.GROUP)) & (done != 0):
            group = the_cache(engine).rendering.first_batch + (number << 2)
            dealer.first_batch = load(i32, group)
        if kind == int(StepKind.RECORDS):
            done = const(i32, 1)
        if done != 0:
            call(remove_piece, engine.pointer, commands.pointer, clock)


@kernel(args=(ptr, ptr, i64))
def step_global_scheduler(address: Value, state: Value, clock: Value) -> None:
    """Deals one piece of its list thread out."""
    engine, dealer = Engine.at(address), GlobalScheduler.at(state, 8)
    if number_of(engine) == BINNING:
        _deal_vertices(engine, dealer, clock)
    else:
        _deal_rendering(engine, dealer, clock)
