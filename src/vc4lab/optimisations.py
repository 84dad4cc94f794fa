"""Optimisations that stand apart: what each one gains, and the way to do without it.

Each is one piece of code. Whether it is used is asked once, while code is compiled or a machine is
made, and costs nothing later. Without a piece everything has the same bytes, which a test checks.
`VC4LAB_WITHOUT=packed-quads,early-depth` in the environment leaves pieces out, to measure them or
to look for a fault. A piece that gains less than 3 % on every row of the benchmarks does not stay.
"""

from __future__ import annotations

import os
from typing import NamedTuple

WITHOUT = os.environ.get("VC4LAB_WITHOUT", "")
"""Names of the pieces that are left out; part of the names under which compiled code is kept."""


class Optimisation(NamedTuple):
    """A row of the table.

    `level`: the instruction sets that it is for, "" for all. `gains`: how much more CPU time
    rows of the benchmarks take without it (x86-64-v4, Zen 4), with two threads more time.
    """

    name: str
    file: str
    level: str
    gains: str

    def serves(self, level: str = "") -> bool:
        """Whether it is to be used in code for an instruction set."""
        is_for = not self.level or level in self.level.split()
        return is_for and self.name not in WITHOUT.split(",")


PACKED_QUADS = Optimisation(
    "packed-quads", "v3d/fragment/packed_quads.py", "avx512",
    "long programs, small triangles: glmark2's phong 33 %, high-poly 18 %; conditionals -14 %",
)  # fmt: skip
PAIRED_BATCHES = Optimisation(
    "paired-batches", "v3d/fragment/packed_quads.py", "avx512",
    "two runs of the program at once, of packed quads: phong 7 %, high-poly 5 %; conditionals -5 %",
)  # fmt: skip
WHOLE_UTILES = Optimisation(
    "whole-utiles", "v3d/tmu/utile_block.py", "avx512",
    "bilinear samples 20 %, magnified 38 %, trilinear 13 %, minified -10 %; a textured screen 13 %",
)  # fmt: skip
NEIGHBOUR_UTILES = Optimisation(
    "neighbour-utiles", "v3d/tmu/utile_block.py", "avx512",
    "3x3 of them besides 2x2: bilinear samples 3 %, glmark2's linear texture 8 %",
)  # fmt: skip
TILE_TABLES = Optimisation(
    "tile-tables", "images/tile_kernels.py", "avx512",
    "addresses in T format out of registers: nearest samples 8 %, minified bilinear ones 3 %",
)  # fmt: skip
COMPRESSED_BLOCKS = Optimisation(
    "compressed-blocks", "v3d/pse/triangle_blocks.py", "avx512",
    "covered blocks listed without a loop: glmark2's build 4 %, 2 pixel triangles 4 %",
)  # fmt: skip
EARLY_DEPTH = Optimisation(
    "early-depth", "v3d/fragment/early_depth.py", "",
    "hidden blocks: Gouraud with depth test 167 %, 2 pixel triangles 31 %; recorded frames 0 %",
)  # fmt: skip
SCALED_DEPTHS = Optimisation(
    "scaled-depths", "v3d/fragment/block.py", "",
    "depths are clamped after they are scaled: Gouraud with depth test 5 %",
)  # fmt: skip
FUSED_BYTES = Optimisation(
    "fused-bytes", "qpu/jit/fast_float.py", "avx512 avx2",
    "bytes to floats and back: nearest samples 14 %, bilinear ones and effect2d 8 %, kmscube 4 %",
)  # fmt: skip
INDEX_RUNS = Optimisation(
    "index-runs", "v3d/tile_lists/primitive_decoder.py", "",
    "vertices drawn in order: glmark2's build 4 to 8 %; the scan of other lists -8 to -18 %",
)  # fmt: skip
SHARED_SHADING = Optimisation(
    "shared-shading", "v3d/vertex/driver.py", "",
    "draws of many vertices, two threads: glmark2's buffer 37 %, build 10 %, high-poly 6 %",
)  # fmt: skip
PLACED_HELPERS = Optimisation(
    "placed-helpers", "simd/team.py", "",
    "two threads: Gouraud 8 %, glmark2's build 4 %, buffer 2 %; phong and high-poly -3 %",
)  # fmt: skip
THOROUGH_BUILDS = Optimisation(
    "thorough-builds", "v3d/draws/refining.py", "",
    "pipelines that come again: glmark2's conditionals 10 %, bump 6 %, function 6 %, phong 5 %",
)  # fmt: skip
UNTOUCHED_TILES = Optimisation(
    "untouched-tiles", "v3d/tiles/loop.py", "",
    "tiles loaded and stored without a draw: glmark2's desktop with blur 5 %",
)  # fmt: skip
NATIVE_TURNS = Optimisation(
    "native-turns", "soc/slices/native_turns.py", "",
    "cores that wait and are interrupted: Ultibo's four that poll counters 430 %, those in wfe 200 %",
)  # fmt: skip
STEADY_WAITS = Optimisation(
    "steady-waits", "soc/cores/steady.py", "",
    "guests that wait by wfe or watch a word: 0.1 % of a core with --realtime, without it 2 to 3 %",
)  # fmt: skip

TABLE = (
    PACKED_QUADS, PAIRED_BATCHES, WHOLE_UTILES, NEIGHBOUR_UTILES, TILE_TABLES, COMPRESSED_BLOCKS,
    EARLY_DEPTH, SCALED_DEPTHS, FUSED_BYTES, INDEX_RUNS, SHARED_SHADING, PLACED_HELPERS,
    THOROUGH_BUILDS, UNTOUCHED_TILES, NATIVE_TURNS,
    STEADY_WAITS,
)  # fmt: skip

_unknown = set(WITHOUT.split(",")) - {"", *(row.name for row in TABLE)}
if _unknown:
    raise ValueError(
        f"VC4LAB_WITHOUT: no optimisation is called {', '.join(sorted(_unknown))}; there are"
        f" {', '.join(row.name for row in TABLE)}"
    )
