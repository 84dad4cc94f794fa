"""Keys and the pointer of a window, as programs with a keyboard and a mouse get them."""

from typing import Any

import pytest

from vc4lab.viewer.controls import Controls
from vc4lab.viewer.linux_keys import KEY_OF_SCANCODE

pygame = pytest.importorskip("pygame", reason="pygame-ce is not installed")


class Sink:
    """Writes down what comes."""

    def __init__(self) -> None:
        self.got: list[tuple[Any, ...]] = []

    def key(self, code: int, pressed: bool) -> None:
        self.got.append(("key", code, pressed))

    def motion(self, x: int, y: int) -> None:
        self.got.append(("motion", x, y))

    def button(self, code: int, pressed: bool) -> None:
        self.got.append(("button", code, pressed))

    def wheel(self, steps: int) -> None:
        self.got.append(("wheel", steps))

    def taken(self) -> list[tuple[Any, ...]]:
        got, self.got = self.got, []
        return got


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def controls(monkeypatch: pytest.MonkeyPatch, sink: Sink) -> Any:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()
    yield Controls(pygame, sink, lambda holds: sink.got.append(("grab", holds)))
    pygame.display.quit()


def send(controls: Controls, kind: int, **fields: Any) -> None:
    controls.take(pygame.event.Event(kind, **fields))


KNOWN = {
    "KSCAN_A": 30, "KSCAN_Z": 44, "KSCAN_M": 50, "KSCAN_1": 2, "KSCAN_0": 11, "KSCAN_RETURN": 28,
    "KSCAN_ESCAPE": 1, "KSCAN_SPACE": 57, "KSCAN_SLASH": 53, "KSCAN_CAPSLOCK": 58, "KSCAN_F1": 59,
    "KSCAN_F10": 68, "KSCAN_F11": 87, "KSCAN_F12": 88, "KSCAN_UP": 103, "KSCAN_DOWN": 108,
    "KSCAN_LEFT": 105, "KSCAN_RIGHT": 106, "KSCAN_HOME": 102, "KSCAN_END": 107,
    "KSCAN_PAGEUP": 104, "KSCAN_PAGEDOWN": 109, "KSCAN_DELETE": 111, "KSCAN_KP_1": 79,
    "KSCAN_KP_5": 76, "KSCAN_KP_9": 73, "KSCAN_KP_0": 82, "KSCAN_KP_ENTER": 96, "KSCAN_LCTRL": 29,
    "KSCAN_RSHIFT": 54, "KSCAN_RALT": 100, "KSCAN_LGUI": 125, "KSCAN_GRAVE": 41,
}  # fmt: skip


def test_keys_have_linuxs_numbers_by_their_place() -> None:
    assert {name: KEY_OF_SCANCODE[getattr(pygame, name)] for name in KNOWN} == KNOWN
    assert len(set(KEY_OF_SCANCODE.values())) == len(KEY_OF_SCANCODE) - 1  # two keys are KEY_43


def test_keys_go_down_and_up_once(controls: Controls, sink: Sink) -> None:
    for kind in (pygame.KEYDOWN, pygame.KEYDOWN, pygame.KEYUP, pygame.KEYUP):
        send(controls, kind, scancode=pygame.KSCAN_W)
    send(controls, pygame.KEYDOWN, scancode=0x1FF)
    assert sink.taken() == [("key", 17, True), ("key", 17, False)]


def test_pointer_buttons_and_wheel(controls: Controls, sink: Sink) -> None:
    send(controls, pygame.MOUSEMOTION, pos=(10, 20), rel=(10, 20))
    send(controls, pygame.MOUSEBUTTONDOWN, button=3, pos=(10, 20))
    send(controls, pygame.MOUSEBUTTONDOWN, button=4, pos=(10, 20))
    send(controls, pygame.MOUSEWHEEL, x=0, y=-2)
    send(controls, pygame.MOUSEWHEEL, x=1, y=0)
    send(controls, pygame.MOUSEBUTTONUP, button=3, pos=(10, 20))
    assert sink.taken() == [
        ("motion", 10, 20), ("button", 0x111, True), ("wheel", -2), ("button", 0x111, False),
    ]  # fmt: skip


def test_what_is_down_is_let_go_with_the_window(controls: Controls, sink: Sink) -> None:
    send(controls, pygame.KEYDOWN, scancode=pygame.KSCAN_A)
    send(controls, pygame.MOUSEBUTTONDOWN, button=1, pos=(0, 0))
    sink.taken()
    send(controls, pygame.WINDOWFOCUSLOST)
    assert sink.taken() == [("key", 30, False), ("button", 0x110, False)]
    send(controls, pygame.KEYUP, scancode=pygame.KSCAN_A)
    assert sink.taken() == []


def test_a_pointer_that_is_held_moves_without_an_end(controls: Controls, sink: Sink) -> None:
    send(controls, pygame.MOUSEMOTION, pos=(60, 40), rel=(1, 1))
    for scancode in (pygame.KSCAN_LCTRL, pygame.KSCAN_LALT, pygame.KSCAN_G):
        send(controls, pygame.KEYDOWN, scancode=scancode)
    assert controls.holds
    send(controls, pygame.KEYUP, scancode=pygame.KSCAN_G)
    send(controls, pygame.MOUSEMOTION, pos=(63, 40), rel=(30, -50))
    assert sink.taken() == [
        ("motion", 60, 40), ("key", 29, True), ("key", 56, True), ("grab", True),
        ("motion", 90, -10),
    ]  # fmt: skip
    send(controls, pygame.KEYDOWN, scancode=pygame.KSCAN_G)
    assert not controls.holds
    assert sink.taken() == [("grab", False)]
