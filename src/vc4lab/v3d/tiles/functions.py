"""What the tile loop calls, compiled when it is needed: loops, transfers of tiles, triangle setups.

The code that they are made of is only imported when they are compiled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vc4lab.simd import Function, NativeFunction, NativeModule, Value, build, ptr
from vc4lab.simd.team import PART_ARGUMENTS
from vc4lab.v3d.pse.setup import Raster
from vc4lab.v3d.state.frame_mode import TransferKey
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns


@lru_cache(maxsize=16)
def tile_functions(
    unknowns: Unknowns = DEFAULT_UNKNOWNS, target: Any = None, recording: bool = False, works: bool = False
) -> NativeModule:
    """Native `run_tiles(job, thread)`; `recording`: the variant that fills `TileJob.records`,
    `works`: the one that fills `TileJob.works`.
    """

    def body(job: Value, thread: Value) -> None:
        from vc4lab.v3d.tiles.loop import run_tiles

        run_tiles(unknowns, job, thread, recording, works)

    functions = {"run_tiles": Function(args=PART_ARGUMENTS, returns=None, body=body)}
    key = f"tiles-{unknowns.digest()}{'-recording' * recording}{'-works' * works}"
    return build("tiles", functions, target=target, float_mode="default", key=key)


@lru_cache(maxsize=128)
def transfer_function(
    key: TransferKey, unknowns: Unknowns = DEFAULT_UNKNOWNS, target: Any = None
) -> NativeFunction:
    """Native `(context, op)` that stores or loads a tile."""

    def body(context: Value, op: Value) -> None:
        from vc4lab.v3d.tlb.stores import transfer

        transfer(context, op, key, unknowns)

    functions = {"move": Function(args=(ptr, ptr), returns=None, body=body)}
    name = f"transfer-{key}-{unknowns.digest()}"
    return build("transfer", functions, target=target, float_mode="default", key=name)["move"]


@lru_cache(maxsize=16)
def triangle_setup(
    index_bits: int, raster: Raster, target: Any = None, weights: str = "plain"
) -> NativeFunction:
    """Native `(context, params, batch)`: fills the `TriangleBatch` with what comes next.

    It leaves the float mode alone: pipelines call it in theirs. weights: as for
    `setup.substitute_clipped`.
    """

    def body(context: Value, params: Value, batch: Value) -> None:
        from vc4lab.v3d.pse.triangle_setup import next_batch

        next_batch(context, params, batch, index_bits, raster, weights)

    functions = {"setup": Function(args=(ptr, ptr, ptr), returns=None, body=body)}
    key = f"triangles-{index_bits}-{raster}-{weights}"
    return build("setup", functions, target=target, float_mode="default", key=key)["setup"]
