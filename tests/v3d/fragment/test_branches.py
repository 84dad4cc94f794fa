"""What is under way in the texture units, and varyings, where a program's ways part and meet."""

import numpy as np
import pytest
from tests.v3d.fragment.scene import Scene, vertex, words

from vc4lab.qpu.run.environment import Unsupported
from vc4lab.v3d.state.tile_context import FragmentKey

TABLE = 0x900000

PARTS_BEFORE = f"""
    ldi r1, {TABLE}
    mov t0s, r1
    mov r0, x_coord
    sub.setf -, r0, 15
    brr.anyn left
    nop ; nop
    nop
    nop
    nop ; nop ; ldtmu0
    brr done
    not r3, r4
    nop
    nop
left:
    nop ; nop ; ldtmu0
    mov r3, r4
done:
    nop
    mov tlbc, r3 ; nop ; sbwait
    nop ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""

MEETS_BEFORE = f"""
    ldi r1, {TABLE}
    mov r0, x_coord
    sub.setf -, r0, 15
    brr.anyn left
    nop
    nop
    nop
    add t0s, r1, 4
    brr done
    nop
    nop
    nop
left:
    add t0s, r1, 8
done:
    nop ; nop ; ldtmu0
    mov tlbc, r4 ; nop ; sbwait
    nop ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""

IN_A_LOOP = f"""
    ldi r1, {TABLE}
    ldi r2, 3
    mov t0s, r1
again:
    add r1, r1, 4
    mov t0s, r1
    nop ; nop ; ldtmu0
    xor r3, r3, r4
    sub.setf r2, r2, 1
    brr.anynz again
    nop
    nop
    nop
    nop ; nop ; ldtmu0
    add r3, r3, r4
    mov tlbc, r3 ; nop ; sbwait
    nop ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""

ONE_SIDED = PARTS_BEFORE.replace("left:\n    nop ; nop ; ldtmu0", "left:\n    nop")


def draw(text: str, engine: str, varyings: int = 0) -> np.ndarray:
    """A square of 32x32 pixels drawn with a program."""
    scene = Scene(32, 32)
    scene.memory.write(TABLE, np.arange(1, 17, dtype=np.uint32).tobytes())
    corners = [(0, 0), (32, 0), (0, 32), (32, 32)]
    vertices = [vertex(x, y, 0.5, 1.0, *[0.25] * varyings) for x, y in corners]
    key = FragmentKey(words(text), n_varyings=varyings)
    scene.add(key, vertices, [(0, 1, 2), (2, 1, 3)])
    return scene.render(engine)


@pytest.mark.parametrize("text", [PARTS_BEFORE, MEETS_BEFORE, IN_A_LOOP])
def test_queues_reach_over_branches(text: str) -> None:
    reference = draw(text, "interpreter")
    assert len(np.unique(reference)) >= (1 if text == IN_A_LOOP else 2)
    for engine in ("fast", "exact"):
        assert np.array_equal(draw(text, engine), reference)


def test_what_depends_on_the_way_is_refused() -> None:
    with pytest.raises(Unsupported, match="QPU-046"):
        draw(ONE_SIDED, "fast")
    twice = MEETS_BEFORE.replace("    add t0s, r1, 8\n", "    add t0s, r1, 8\n    mov r3, vary\n")
    with pytest.raises(Unsupported, match="QPU-046"):
        draw(twice, "fast", varyings=2)
