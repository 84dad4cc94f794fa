"""Blocks that wait together for the reference interpreter are drawn as if they came one by one."""

import numpy as np
import pytest
from tests.v3d.fragment.scene import UNIFORMS_AT, ZS_DUMP, Scene, vertex, words

from vc4lab.v3d.state.frame_mode import TileLayout
from vc4lab.v3d.state.tile_context import QUEUED_BLOCKS, FragmentKey

END = "\n nop ; nop ; thrend\n nop ; nop\n nop ; nop ; sbdone"
BLEND = """
    nop ; nop ; sbwait
    mov tlbz, rb15
    nop ; nop ; loadc
    nop ; v8adds r0, r4, unif
    mov tlbc, r0
"""
"""Adds a colour to what is there."""
BRANCH_AND_BLEND = """
    nop ; nop ; sbwait
    and.setf -, x_coord, 4
    brr.allz -, left
    nop
    nop
    nop
    nop ; nop ; loadc
    nop ; v8adds r0, r4, r4
    add r0, r0, 3
    mov tlbc, r0
    brr -, out
    nop
    nop
    nop
    :left
    mov tlbz, rb15
    nop
    nop
    mov r0, unif
    mov tlbc, r0
    :out
    nop
"""
"""Blocks take different ways; some look at the colour, some at the depth."""
BRANCH = """
    nop ; nop ; sbwait
    mov r1, y_coord
    and.setf -, r1, 8
    brr.anyz -, left
    nop
    nop
    nop
    mov tlbz, rb15
    nop
    nop
    mov tlbc, 7
    brr -, out
    nop
    nop
    nop
    :left
    mov tlbz, rb15
    nop
    nop
    mov r0, unif
    mov tlbc, r0
    :out
    nop
"""
"""Different ways without a look at the tile buffer."""
FLAGS = """
    nop ; nop ; sbwait
    mov tlbz, rb15
    nop
    nop
    mov r0, ms_flags
    nop
    add r0, r0, unif
    mov tlbc, r0
"""
"""The colour shows which samples passed the depth test."""
NEIGHBOURS = """
    nop ; nop ; sbwait
    nop ; nop ; loadc
    mov r1, r4 ; nop
    nop
    nop ; mov r0, r1 >> 5
    nop
    nop ; v8adds r0, r0, unif
    mov tlbc, r0
"""
"""Adds to the colour of another quad's pixel, covered or not."""
UNIFORMS_APART = f"""
    nop ; nop ; sbwait
    mov r0, x_coord
    ldi r1, {UNIFORMS_AT + 0x400}
    ldi r2, 60
    and r0, r0, r2 ; nop
    add unif_addr, r0, r1
    nop
    nop
    mov tlbz, rb15
    mov r0, unif ; nop
    mov tlbc, r0
"""
"""Each block reads a uniform of its own."""

TEXTS = {
    "blend": BLEND, "branch and blend": BRANCH_AND_BLEND, "branch": BRANCH, "flags": FLAGS,
    "neighbours": NEIGHBOURS, "uniforms apart": UNIFORMS_APART,
    "uniforms apart and blend": UNIFORMS_APART.replace("mov tlbc, r0", "nop ; nop ; loadc\n"
                                                       "nop ; v8adds r0, r0, r4\n mov tlbc, r0"),
}  # fmt: skip


def scene_of(text: str, layout: TileLayout, **options) -> Scene:
    """Strips of small triangles, large ones over them, in two draws."""
    tile = (32, 32) if layout.multisample else (64, 64)
    scene = Scene(64, 48, layout=layout, tile=tile, clear_colour=0x01020304)
    scene.memory.write(UNIFORMS_AT + 0x400, np.arange(5, 69, dtype=np.uint32).tobytes())
    rng = np.random.default_rng(8)
    small = [
        vertex(1.3 * k % 61 + rng.uniform(0, 5), 3 * (k // 47) + rng.uniform(0, 9),
               rng.uniform(0.2, 0.8))
        for k in range(705)
    ]  # fmt: skip
    strip = [(k, k + 1, k + 2) for k in range(len(small) - 2)]
    large = [vertex(*rng.uniform(-20, 80, 2), rng.uniform(0, 1)) for _ in range(30)]
    key = FragmentKey(words(text + END), depth_function=1, z_update=True, **options)
    scene.add(key, small, strip, uniforms=(0x00010203,))
    scene.add(key, large, uniforms=(0x00200010,))
    return scene


@pytest.mark.parametrize(
    ("name", "counting"), [*((name, False) for name in TEXTS), ("blend", True), ("branch", True)]
)
def test_the_same_as_compiled(name: str, counting: bool) -> None:
    scene = scene_of(TEXTS[name], TileLayout(), counting=counting)
    expected, depth = scene.render("exact").copy(), scene.depth().copy()
    counts = dict(scene.counters)
    assert len(np.unique(expected)) > 2
    assert counts["quads_valid"] > 4 * QUEUED_BLOCKS
    assert (scene.render("interpreter") == expected).all()
    assert (scene.depth() == depth).all()
    assert scene.counters == counts


@pytest.mark.parametrize("name", ["branch and blend", "flags"])
def test_the_same_with_four_samples(name: str) -> None:
    scene = scene_of(TEXTS[name], TileLayout(multisample=True))
    scene.render("exact")
    expected, depth = scene.samples().copy(), scene.samples(ZS_DUMP).copy()
    scene.render("interpreter")
    assert (scene.samples() == expected).all()
    assert (scene.samples(ZS_DUMP) == depth).all()
