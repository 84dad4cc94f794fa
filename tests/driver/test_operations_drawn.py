"""Every operation of TGSI, drawn: the JIT and the reference interpreter give the same words, and those
are what numpy computes from the operation's description.

Words are looked at byte by byte: each of four squares shows one component.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.driver.drawing import DEPTH, Drawing
from tests.driver.operation_cases import (
    CASES,
    CONSTANTS,
    FRAGMENT,
    KEPT,
    LEVELS,
    LOOK,
    SIDE,
    SIZE,
    VERTEX,
    Array,
    Case,
    operands,
    planes,
    sample_texels,
    texels,
    words_of,
)
from tests.driver.test_textures import quad
from tests.mesa.conftest import RunningServer

from vc4lab.driver.compiler.tgsi.operations import OPERATIONS
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages, state_commands
from vc4lab.mesa.protocol.codes import Compare, MipFilter, Primitive, Stage, Target
from vc4lab.options import GpuOptions

ENGINES = ("jit", "interpreter")


def _sampled_texture(drawing: Drawing) -> int:
    """A texture whose samples have texels of their own: drawn one after the other."""
    several = drawing.texture(SIDE, SIDE, samples=4)
    one = drawing.texture(SIDE, SIDE, bind=8)
    drawing.target(several)
    drawing.viewport(SIDE, SIDE)
    drawing.rasterizer(multisample=True)
    for number in range(4):
        drawing.put(one, sample_texels(number))
        drawing.client.submit(state_commands.SetSampleMask(1 << number))
        drawing.sampled(one)
        quad(drawing)
    drawing.client.submit(state_commands.SetSampleMask(0xF))
    drawing.rasterizer()
    return several


class Both:
    """A client of each engine, both with the same textures."""

    def __init__(self, drawings: list[Drawing]) -> None:
        self._drawings = drawings
        self._targets: list[int] = []
        self._textures: list[tuple[int, int, int]] = []
        for drawing in drawings:
            self._targets.append(drawing.texture(SIZE, 4 * SIZE))
            drawing.defaults()
            texture = drawing.texture(SIDE, SIDE, levels=LEVELS, bind=8)
            for level in range(LEVELS):
                drawing.put(texture, texels(level), level)
            cube = drawing.texture(SIDE, SIDE, DEPTH, bind=8, target=Target.TEXTURE_CUBE)
            for face in range(6):
                grey = 0x7FFFFF00 if face == 0 else 0
                words = np.full((SIDE, SIDE), grey, np.uint32)
                drawing.put(cube, words.view(np.uint8).reshape(SIDE, SIDE, 4), z=face)
            self._textures.append((texture, cube, _sampled_texture(drawing)))

    def words(self, case: Case) -> list[Array]:
        """(4, rows, columns) words of T[9] by each engine."""
        return [
            self._words(*one, case) for one in zip(self._drawings, self._targets, self._textures, strict=True)
        ]

    def _words(self, drawing: Drawing, target: int, textures: tuple[int, int, int], case: Case) -> Array:
        texture, cube, several = textures
        if case.texture == "2D":
            drawing.sampled(texture, last_level=3, min_mip_filter=MipFilter.NEAREST)
        elif case.texture == "2D_MSAA":
            drawing.sampled(several)
        else:
            drawing.sampled(cube, last_layer=5, compare_mode=True, compare_func=Compare.LEQUAL)
        drawing.target(target)
        drawing.clear(4, tuple((KEPT >> shift & 255) / 255 for shift in (0, 8, 16, 24)))
        drawing.shaders(VERTEX, FRAGMENT.format(texture=case.texture, body=case.body))
        corners = np.array([(0, 0), (SIZE, 0), (SIZE, SIZE), (0, 0), (SIZE, SIZE), (0, SIZE)], np.float64)
        varyings = [corners @ one[:2] + one[2] for four in (*planes().values(), LOOK) for one in four]
        parts = []
        for component in range(4):
            x, y = ((corners + np.array((0, component * SIZE))) / (SIZE, 4 * SIZE) * 2 - 1).T
            shown = np.repeat(np.eye(4)[component], len(x)).reshape(4, -1)
            parts.append([x, y, np.zeros(len(x)), np.ones(len(x)), *varyings, *shown])
        drawing.vertices(np.concatenate(parts, 1).T, 4, 4, 4, 4, 4, 4)
        drawing.viewport(SIZE, 4 * SIZE)
        drawing.constants(Stage.FRAGMENT, np.concatenate([np.zeros((1, 4), np.float32), CONSTANTS]))
        drawing.draw(Primitive.TRIANGLES, 4 * len(corners))
        found = np.ascontiguousarray(drawing.get(target)).view(np.uint32)
        return found.reshape(4, SIZE, SIZE)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A server for each engine."""
    servers, drawings = [], []
    for engine in ENGINES:
        path = tmp_path_factory.mktemp(engine) / "socket"
        server = RunningServer(
            path,
            lambda reporter, engine=engine: VideoCoreScreen(
                reporter, mesa_compiler(), GpuOptions(engine=engine)
            ),
        )
        servers.append(server)
        client = server.client()
        client.send(messages.CreateRenderer(b"test\0"))
        client.send(messages.ProtocolVersion(2))
        assert client.words(3) == (1, 11, 2)
        drawings.append(Drawing(client))
    yield Both(drawings)
    for server in servers:
        server.close()


def test_no_operation_is_left_out() -> None:
    assert set(CASES) == set(OPERATIONS)
    for name, case in CASES.items():
        assert name in (case.body + "\nEND").replace("\n", " ").split(" "), name


@pytest.mark.parametrize("name", OPERATIONS)
def test_both_engines_draw_what_the_operation_says(both: Both, name: str) -> None:
    """Integers and truth values to the bit, floats to one in a thousand, bytes of texels."""
    case = CASES[name]
    native, reference = both.words(case)
    assert (native == reference).all()
    wanted = np.asarray(case.expected(operands()))
    if wanted.dtype.kind != "f":
        assert (reference == words_of(wanted)).all()
        return
    given = reference.view(np.float32).astype(np.float64)
    wanted = np.broadcast_to(wanted.astype(np.float64), given.shape)
    near = np.abs(given - wanted) <= 1e-3 * np.maximum(np.abs(wanted), 0.1)
    assert near.all(), (np.argwhere(~near)[:8], wanted[~near][:8], given[~near][:8])
