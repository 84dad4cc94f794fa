"""What docs/extending.md says to a GPU architect: its methods are put in, and shaders run."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driver.drawing import Drawing
from tests.driver.shaders import VARYING
from tests.driver.test_compile import SAMPLES, check_fragment
from tests.mesa.conftest import RunningServer

from vc4lab.driver.compiler.compile import compile_fragment
from vc4lab.driver.compiler.interface import FragmentKey
from vc4lab.driver.compiler.lower.arithmetic import Floats
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.codes import Primitive
from vc4lab.options import GpuOptions
from vc4lab.qpu.isa import semantics
from vc4lab.qpu.isa.ops import Word
from vc4lab.qpu.isa.semantics import Result, Semantics
from vc4lab.qpu.machine.code import Operand, Reg

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
CODE = 9
SIZE = 32
FRACTIONS = """FRAG
DCL IN[0], GENERIC[0], PERSPECTIVE
DCL OUT[0], COLOR
FRC OUT[0], IN[0]
END
"""


def methods() -> dict[str, Any]:
    """The methods that the page shows."""
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(# (?:driver|qpu)/.*?)```", PAGE.read_text(), re.S):
        scope: dict[str, Any] = {"Operand": Operand, "Reg": Reg, "Word": Word, "Result": Result}
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), scope)
        found.update({name: one for name, one in scope.items() if callable(one)})
    return found


@pytest.fixture
def operation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The new operation and its lowering; native code goes to a cache of its own."""
    known = methods()
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(Semantics, "reserved_9", known["reserved_9"], raising=False)
    monkeypatch.setitem(semantics._ADD_METHODS, CODE, "reserved_9")
    monkeypatch.setattr(Floats, "fraction", known["fraction"])


def sample(name: str) -> str:
    (path,) = (one for one in SAMPLES if one.name == name)
    return path.read_text()


def codes(words: tuple[int, ...]) -> list[int]:
    """The add ALU's operations."""
    return [word >> 24 & 31 for word in words if word >> 60 not in (14, 15)]


def test_a_lowering_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(FRACTIONS.replace("FRC OUT[0], IN[0]", "RCP OUT[0], IN[0].xxxx"))
    before = compile_fragment(program, FragmentKey())
    monkeypatch.setattr(Floats, "reciprocal", methods()["reciprocal"])
    assert len(check_fragment(program, FragmentKey()).words) <= len(before.words) - 3


@pytest.mark.usefixtures("operation")
def test_an_operation_of_ones_own_computes() -> None:
    """A scene's shader, on the interpreter."""
    program = parse(sample("ints.loop-const.1.frag.tgsi"))
    assert codes(check_fragment(program, FragmentKey()).words).count(CODE) == 6


def test_without_it_the_code_stays_reserved() -> None:
    assert CODE not in semantics._ADD_METHODS


@pytest.mark.usefixtures("operation")
def test_both_engines_draw_with_it(tmp_path: Path) -> None:
    found = []
    for engine in ("jit", "interpreter"):
        server = RunningServer(
            tmp_path / f"{engine}-socket",
            lambda reporter, engine=engine: VideoCoreScreen(
                reporter, mesa_compiler(), GpuOptions(engine=engine)
            ),
        )
        client = server.client()
        client.socket.settimeout(120)  # nothing is in the cache
        client.send(messages.CreateRenderer(b"test\0"))
        client.send(messages.ProtocolVersion(2))
        client.words(3)
        drawing = Drawing(client)
        target = drawing.texture(SIZE, SIZE)
        drawing.target(target)
        drawing.viewport(SIZE, SIZE)
        drawing.defaults()
        drawing.shaders(VARYING, FRACTIONS)
        places = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)], np.float32)
        rows = np.zeros((4, 8), np.float32)
        rows[:, :2], rows[:, 3] = places, 1
        rows[:, 4:6], rows[:, 6] = 3 * places, -0.25
        drawing.vertices(rows, 4, 4)
        drawing.draw(Primitive.TRIANGLE_FAN, 4)
        found.append(drawing.get(target))
        words = server.screen.processor.draws.pipeline.fragment.shader.words
        assert CODE in codes(words)
        client.socket.close()
        server.close()
    assert (found[0] == found[1]).all()
    x = ((np.arange(SIZE) + 0.5) / SIZE * 2 - 1) * 3
    expected = (x - np.floor(x)) * 255
    assert abs(found[0][..., 0] - expected).max() <= 1
    assert abs(found[0][..., 1] - expected[:, None]).max() <= 1
    assert (abs(found[0][..., 2].astype(int) - 191) <= 1).all()
