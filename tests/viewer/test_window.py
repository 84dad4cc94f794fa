"""The window, on SDL's dummy display."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from PIL import Image

from vc4lab.viewer.window import NoWindow, Window, check_display


@pytest.fixture
def window(monkeypatch):
    pytest.importorskip("pygame", reason="pygame-ce is not here")
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
    assert pygame.display.get_surface().get_at((5, 5))[:3] == (255, 0, 0)
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
    flips = []
    monkeypatch.setattr(pygame.display, "flip", lambda: flips.append(1))
    pygame.event.post(pygame.event.Event(pygame.WINDOWEXPOSED))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.stay()
    assert flips
    assert not window.is_open


def test_a_display_that_is_not_there_is_no_window() -> None:
    pytest.importorskip("pygame", reason="pygame-ce is not here")
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
    assert result.stdout == "the display cannot be reached; going on without a window\n"
