"""Frames with more changes of state than the chip's binner counts (HW-2116) become several jobs."""

import numpy as np
import pytest
from tests.driver import shaders
from tests.driver.drawing import RGBA, Drawing
from tests.driver.test_instances import INSTANCE
from tests.driver.test_moving_draws import COLUMNS, HEIGHT, WIDTH, jobs_of, shader_states, strips
from tests.mesa.conftest import RunningServer

from vc4lab.driver.draws.placing import MOST_CHANGES
from vc4lab.mesa.protocol.codes import Primitive, Stage
from vc4lab.v3d.ptb.context import STATE_LIMIT


@pytest.fixture
def target(drawing: Drawing) -> int:
    handle = drawing.texture(WIDTH, HEIGHT, RGBA)
    drawing.target(handle)
    drawing.viewport(WIDTH, HEIGHT)
    drawing.defaults()
    return handle


def test_draws_with_uniforms_of_their_own(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    count = MOST_CHANGES + 100
    drawing.shaders(shaders.POSITION_ONLY, shaders.UNIFORM_COLOUR)
    drawing.vertices(strips(), 4)
    drawing.clear(4)
    drawing.constants(Stage.FRAGMENT, (1, 1, 1, 1))
    drawing.draw(Primitive.TRIANGLE_STRIP, 4)
    drawing.get(target)
    jobs, states = jobs_of(gpu), shader_states(gpu)
    drawing.clear(4)
    for number in range(count):
        drawing.constants(Stage.FRAGMENT, (number % 251 / 255, number // 251 / 255, 0, 1))
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, 4 * (number % (COLUMNS - 1)))
    picture = drawing.get(target)
    wanted = np.zeros((COLUMNS, 2), int)
    for number in range(count - COLUMNS + 1, count):
        wanted[number % (COLUMNS - 1)] = number % 251, number // 251
    assert (picture[0, 1::4, :2] == wanted).all()
    assert len(jobs) == 2
    assert sum(states) >= count
    assert max(states) <= STATE_LIMIT
    assert jobs[0].draws[-1] + 1 == jobs[1].draws[0]
    assert gpu.codes() == []


def test_a_draw_of_many_instances(drawing: Drawing, target: int, gpu: RunningServer) -> None:
    """Each instance has a shader state: two frames share one draw."""
    count = MOST_CHANGES + 700
    drawing.shaders(INSTANCE, shaders.VARYING_COLOUR)
    drawing.vertices(strips()[:4], 4)
    jobs, states = jobs_of(gpu), shader_states(gpu)
    for _ in range(2):
        drawing.clear(4)
        drawing.draw(Primitive.TRIANGLE_STRIP, 4, instance_count=count)
        picture = drawing.get(target)
        last = [max(range(one, count, COLUMNS)) // COLUMNS for one in range(COLUMNS)]
        assert picture[0, 1::4, 0].tolist() == [*range(COLUMNS)]
        assert picture[0, 1::4, 1].tolist() == [min(one, 255) for one in last]
        assert len(jobs) == 2
        assert [sum(states), max(states)] == [count, MOST_CHANGES]
        jobs.clear()
        states.clear()
    assert gpu.codes() == []
