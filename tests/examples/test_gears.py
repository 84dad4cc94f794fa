"""gears against mathematics done anew: every wheel in its place, turned and lit as it should be."""

from collections.abc import Callable
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, radians, sin

import pytest
from PIL import Image

Boot = Callable[..., tuple[Image.Image, str]]
Vector = tuple[float, float, float]

WIDTH, HEIGHT = 640, 480
TILT, TWIST = radians(20), radians(30)
TURNING = radians(70) / 60  # the red wheel, in a frame
LIGHT = (1.0, 1.0, 2.0)


@dataclass(frozen=True)
class Wheel:
    """Place, radii and colour; `turns` relative to the red one, `tooth` at that one's start."""

    x: float
    y: float
    hole: float
    pitch: float
    front: float
    teeth: int
    colour: Vector
    turns: float
    tooth: float


# A tooth of red points along x at first, so green has a gap there: half a tooth away. Where blue
# touches, above, red has a tooth too (a quarter of 20 is whole), so blue has a gap below.
RED = Wheel(-3.0, -2.0, 1.0, 4.0, 0.5, 20, (0.8, 0.1, 0.0), 1, 0.0)
GREEN = Wheel(3.1, -2.0, 0.5, 2.0, 1.0, 10, (0.0, 0.8, 0.2), -2, pi - pi / 10)
BLUE = Wheel(-3.0, 4.1, 1.3, 2.0, 0.25, 10, (0.2, 0.2, 1.0), -2, -pi / 2 - pi / 10)
WHEELS = [RED, GREEN, BLUE]


def seen(x: float, y: float, z: float) -> Vector:
    """Twist around y, then tilt around x."""
    x, z = cos(TWIST) * x + sin(TWIST) * z, -sin(TWIST) * x + cos(TWIST) * z
    return x, cos(TILT) * y - sin(TILT) * z, sin(TILT) * y + cos(TILT) * z


def pixel(x: float, y: float, z: float) -> tuple[int, int]:
    ex, ey, ez = seen(x, y, z)
    scale = 5.0 / (40.0 - ez) * HEIGHT / 2
    return int(WIDTH / 2 + ex * scale), int(HEIGHT / 2 - ey * scale)


def front_colour(wheel: Wheel) -> Vector:
    facing = sum(a * b for a, b in zip(seen(0, 0, 1), LIGHT, strict=True)) / hypot(*LIGHT)
    red, green, blue = (min(255.0, 255 * c * (0.2 + facing)) for c in wheel.colour)
    return red, green, blue


def is_front(picture: Image.Image, wheel: Wheel, radius: float, angle: float) -> bool:
    """Whether a place on the wheel, turned by `angle`, shows its front's colour."""
    place = pixel(wheel.x + radius * cos(angle), wheel.y + radius * sin(angle), wheel.front)
    shown = picture.getpixel(place)
    assert isinstance(shown, tuple)
    return all(abs(a - b) < 1.5 for a, b in zip(shown, front_colour(wheel), strict=True))


def flank(wheel: Wheel) -> tuple[float, float]:
    """The middle of a tooth's flank: radius, and angle from the tooth's middle."""
    step = 2 * pi / wheel.teeth
    root, tip = (wheel.pitch - 0.35, 0.375 * step), (wheel.pitch + 0.35, 0.125 * step)
    x, y = ((root[0] * f(root[1]) + tip[0] * f(tip[1])) / 2 for f in (cos, sin))
    return hypot(x, y), atan2(y, x)


@pytest.mark.parametrize("frames", [2, 20])
def test_gears_mesh_and_turn(boot: Boot, frames: int) -> None:
    picture, words = boot("gears", "--frames", str(frames))
    assert "no vertical sync" not in words
    for wheel in WHEELS:
        # The first picture of all shows the empty page, the second one the program's frame 0.
        angle = wheel.tooth + wheel.turns * TURNING * (frames - 2)
        step = 2 * pi / wheel.teeth
        for tooth in range(wheel.teeth):
            at = angle + tooth * step
            assert is_front(picture, wheel, (wheel.hole + wheel.pitch - 0.35) / 2, at)
            assert not is_front(picture, wheel, wheel.hole - 0.15, at)
            assert not is_front(picture, wheel, wheel.pitch + 0.2, at + step / 2)
            if wheel is RED and cos(at) > 0.9:
                continue  # green lies nearer and hides some of these
            radius, half = flank(wheel)
            margin = 0.04 * step  # one frame turns the wheel by 0.065 of a step
            for side in (-1, 1):
                assert is_front(picture, wheel, radius, at + side * (half - margin))
                assert not is_front(picture, wheel, radius, at + side * (half + margin))
    black = sum(1 for p in picture.convert("L").tobytes() if p == 0)
    assert 0.6 < black / (WIDTH * HEIGHT) < 0.9


def test_gears_tell_frames_a_second(boot: Boot) -> None:
    _, words = boot("gears", "--frames", "62")
    assert "60 frames in 1000 ms = 60.0 frames a second" in words
