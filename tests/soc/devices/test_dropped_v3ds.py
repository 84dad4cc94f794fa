"""A V3D that loses its power begins anew; one that cannot does not stay until Python looks."""

import gc
import weakref

from vc4lab.memory.host import TOGETHER
from vc4lab.v3d.core import V3D
from vc4lab.v3d.state.power_on import parts_of

COUNTS = bytes.fromhex("010080e2fdffffea")
INTENA, VPMBASE, BPOA, BPOS = 0x034, 0x504, 0x308, 0x30C


def _state(v3d: V3D) -> dict[str, object]:
    return {
        f"{name}.{attribute}": str(getattr(part, attribute))
        for name, part, attributes in parts_of(v3d)
        for attribute in attributes
    }


def test_a_v3d_without_power_begins_anew_and_keeps_what_it_compiled(boot):
    bridge = boot(COUNTS, v3d_factory=None).v3d_bridge
    bridge.switch("domain", True)
    v3d, first = bridge.v3d, _state(bridge.v3d)
    bridge.write_other(INTENA, 15)
    bridge.write_other(VPMBASE, 7)
    v3d.counters.enable = 3
    v3d.threads[0].stack.append(0x1000)
    bridge.write_other(BPOA, 0x100000)
    bridge.write_other(BPOS, 0x10000)
    assert bridge.read_other(BPOS) == 0x10000
    assert _state(v3d) != first
    bridge.switch("domain", False)
    assert _state(v3d) == first
    bridge.switch("domain", True)
    assert bridge.v3d is v3d
    assert bridge.read_other(INTENA) == bridge.read_other(BPOS) == bridge.read_other(BPOA) == 0
    assert not v3d.threads[0].stack


def test_v3ds_that_cannot_begin_anew_do_not_pile_up(boot):
    machine = boot(COUNTS, v3d_factory=None)
    bridge = machine.v3d_bridge
    alive: list[weakref.ref[V3D]] = []
    gc.collect()
    gc.disable()
    try:
        for _turn in range(3 * TOGETHER):
            bridge.switch("domain", True)
            bridge.v3d.threads[0].running = True
            alive.append(weakref.ref(bridge.v3d))
            bridge.switch("domain", False)
        assert sum(one() is not None for one in alive) < TOGETHER
        for _turn in range(TOGETHER):
            bridge.switch("domain", False)
        bridge.switch("domain", True)
        assert bridge.v3d is not None
    finally:
        gc.enable()
