"""V3Ds that lose their power are circles of objects: they go after a few, not when Python looks."""

from __future__ import annotations

import gc
import weakref

from vc4lab.memory.heap import TOGETHER
from vc4lab.v3d.core import V3D

COUNTS = bytes.fromhex("010080e2fdffffea")


def test_v3ds_without_power_do_not_pile_up(boot):
    machine = boot(COUNTS, v3d_factory=None)
    bridge = machine.v3d_bridge
    alive: list[weakref.ref[V3D]] = []
    gc.collect()
    gc.disable()
    try:
        for _turn in range(3 * TOGETHER):
            bridge.switch("domain", True)
            alive.append(weakref.ref(bridge.v3d))
            bridge.switch("domain", False)
        assert sum(one() is not None for one in alive) < TOGETHER
        for _turn in range(TOGETHER):
            bridge.switch("domain", False)
        bridge.switch("domain", True)
        assert bridge.v3d is not None
    finally:
        gc.enable()
