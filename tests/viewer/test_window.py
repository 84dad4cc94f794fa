"""The window, on SDL's dummy display."""

import os
import subprocess
import sys

import pytest
from PIL import Image
from tests.viewer.test_controls import Sink

from vc4lab.viewer.window import NoWindow, Window, check_display


@pytest.fixture
def window(monkeypatch):
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = Window()
    yield made
    made.close()


def test_no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(NoWindow, match="no display"):
        check_display()


def test_shows_and_takes_keys(window):
    import pygame

    window.show(Image.new("RGB", (64, 48), (255, 0, 0)))
    assert window._window.get_surface().get_at((5, 5))[:3] == (255, 0, 0)
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, unicode="x", key=pygame.K_x))
    assert window.keys() == b"x"
    assert window.keys() == b""
    window._next_look = 0.0
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    assert window.keys() == b""
    assert window.closed
    window.show(Image.new("RGB", (64, 48)))


def test_keys_without_a_character_are_those_of_a_terminal(window):
    import pygame

    window.show(Image.new("RGB", (8, 8)))
    for key, text in ((pygame.K_UP, ""), (pygame.K_DELETE, ""), (pygame.K_RETURN, "\r")):
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, unicode=text, key=key))
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, unicode="", key=pygame.K_LSHIFT))
    assert window.keys() == b"\x1b[A\x1b[3~\r"


def test_a_still_picture_is_drawn_again_when_it_has_to_be(window, monkeypatch):
    import pygame

    window.show(Image.new("RGB", (8, 8)))
    window._window.get_surface().fill((9, 9, 9))
    pygame.event.post(pygame.event.Event(pygame.WINDOWEXPOSED))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.stay()
    assert window._window.get_surface().get_at((5, 5))[:3] == (0, 0, 0)
    assert not window.is_open


def test_the_picture_keeps_its_shape_when_the_window_takes_another_size(window):
    import pygame

    window.show(Image.new("RGB", (64, 48), (255, 0, 0)))
    for size, corner in (((320, 120), (80, 0)), ((120, 320), (0, 115)), ((16, 12), (0, 0))):
        window._window.size = size
        list(window.events())
        surface = window._window.get_surface()
        assert surface.get_size() == size
        x, y = corner
        assert surface.get_at(corner)[:3] == (255, 0, 0)
        assert surface.get_at((size[0] - 1 - x, size[1] - 1 - y))[:3] == (255, 0, 0)
        if corner != (0, 0):
            assert surface.get_at((0, 0))[:3] == (0, 0, 0)
            assert surface.get_at((max(x - 1, 0), max(y - 1, 0)))[:3] == (0, 0, 0)
            surface.fill((9, 9, 9))  # what was in the window before
            pygame.event.post(pygame.event.Event(pygame.WINDOWEXPOSED))
            list(window.events())
            assert surface.get_at((0, 0))[:3] == (0, 0, 0)
    window._window.size = 320, 120
    pygame.event.get()
    pygame.event.post(
        pygame.event.Event(pygame.MOUSEMOTION, pos=(80 + 100, 50), rel=(1, 1), buttons=(0, 0, 0))
    )
    moved = [event.pos for event in window.events() if event.type == pygame.MOUSEMOTION]
    assert moved == [(40, 20)]


def test_a_picture_that_fails_leaves_the_window_usable(window):
    def fails(_address, _pitch):
        raise LookupError("no picture")

    with pytest.raises(LookupError, match="no picture"):
        window.paint((16, 16), fails)
    assert not window._picture.get_locked()
    window.show(Image.new("RGB", (16, 16), (255, 0, 0)))
    assert window._window.get_surface().get_at((0, 0))[:3] == (255, 0, 0)


def test_the_pointer_is_held_and_let_go(window, monkeypatch):
    import pygame

    controls = window.controls(Sink())
    controls.hold(True)  # no window yet
    window.show(Image.new("RGB", (64, 48)))
    relative = []
    monkeypatch.setattr(pygame.mouse, "set_relative_mode", relative.append)
    controls.hold(True)
    assert window._window.grab_mouse
    controls.release()
    assert not window._window.grab_mouse
    assert relative == [True, False]


def test_windows_of_many_sizes_use_no_freed_memory(tmp_path):
    """pygame-ce's own scaled display uses freed memory when it takes another size."""
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    text = (
        "from PIL import Image\n"
        "from vc4lab.viewer.window import Window\n"
        "for turn in range(3):\n"
        "    window = Window()\n"
        "    for width in range(16, 1600, 97):\n"
        "        window.show(Image.new('RGB', (width, 48 + width % 31)))\n"
        "    window.close()\n"
    )
    environment = os.environ | {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    environment |= {"MALLOC_PERTURB_": "165", "PYTHONMALLOC": "malloc"}
    result = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_display_that_is_not_there_is_no_window() -> None:
    pytest.importorskip("pygame", reason="pygame-ce is not installed")
    text = (
        "from vc4lab.viewer.window import NoWindow, Window\n"
        "try:\n    Window()\nexcept NoWindow as reason:\n    print(reason)"
    )
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["DISPLAY"] = ":4711"
    environment["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
    result = subprocess.run(
        [sys.executable, "-c", text],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert result.stdout == "the display cannot be reached; continuing without a window\n"
