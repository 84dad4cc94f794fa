"""Random stencil set-ups against a model in plain Python that does what the reference says."""

import random
from dataclasses import dataclass, field

import pytest
from tests.v3d.fragment.scene import Scene
from tests.v3d.tlb.test_tlb import COMPARE, OPERATIONS, STENCIL, full

from vc4lab.v3d.state.tile_context import FragmentKey

CODES = (0x01, 0x03, 0x0F, 0xFF)


@dataclass
class Side:
    """One configuration: nothing is tested before it is written."""

    word: int = 0
    mask: int = 0
    enabled: bool = False


@dataclass
class Model:
    """Hardware reference 7.9, front side first."""

    sides: list[Side] = field(default_factory=lambda: [Side(), Side()])

    def setup(self, word: int) -> None:
        which = word >> 30
        if which == 0:
            for number, side in enumerate(self.sides):
                side.mask = word >> 8 * number & 255
        for number in range(2):
            if which >> number & 1:
                self.sides[number] = Side(word, CODES[word >> 28 & 3], True)

    def test(
        self, reverse: bool, function: int, update: bool, new: int, z: int, old: int
    ) -> tuple[bool, int, int]:
        """(drawn, depth, stencil) of a pixel with depth `z` and stencil `old`."""
        side = self.sides[reverse]
        reference, mask = side.word >> 8 & 255, side.word & 255
        matched = COMPARE[side.word >> 16 & 7](reference & mask, old & mask) or not side.enabled
        nearer = COMPARE[function](new, z)
        place = 19 if not matched else 22 if nearer else 25
        result = OPERATIONS[side.word >> place & 7](old, reference)
        if side.enabled:
            old = old & ~side.mask | result & side.mask
        passed = matched and nearer
        return passed, new if passed and update else z, old


@pytest.mark.parametrize("seed", range(4))
def test_random_setups(seed: int) -> None:
    rng = random.Random(seed)
    function, update = rng.choice((1, 3, 5)), seed != 3
    key = FragmentKey(STENCIL, depth_function=function, z_update=update)
    outcomes = set()
    for number in range(60):
        words = [rng.randrange(4) << 30 | rng.getrandbits(30) for _ in range(2)]
        old, z, new = rng.choice((0, 255, rng.getrandbits(8))), 5, rng.choice((4, 5, 6))
        if rng.random() < 0.5:  # equal more often than by chance
            words = [word & ~0xFF00 | (old ^ rng.choice((0, 1, 16))) << 8 for word in words]
        reverse = rng.random() < 0.5
        model = Model()
        for word in words:
            model.setup(word)
        expected = model.test(reverse, function, update, new, z, old)
        scene = Scene(4, 4, clear_zs=z << 8 | old)
        facing = 7 if reverse else 3
        scene.add(key, full(), uniforms=(*words, new, 1), facing=facing)
        for engine in ("fast", "interpreter") if number % 10 == 0 else ("fast",):
            drawn = bool(scene.render(engine)[0, 0])
            word = int(scene.depth()[0, 0])
            assert (drawn, word >> 8, word & 255) == expected, (list(map(hex, words)), reverse)
        outcomes.add(expected[0])
    assert outcomes == {False, True}
