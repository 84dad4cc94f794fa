"""A window with a thread of its own, on SDL's dummy display."""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.viewer.test_controls import Sink

from vc4lab.viewer.fitting import first_size
from vc4lab.viewer.live import LiveWindow
from vc4lab.viewer.window import NoWindow, Window

pygame = pytest.importorskip("pygame", reason="pygame-ce is not installed")


class Source:
    """A picture of one colour."""

    def __init__(self) -> None:
        self.there: tuple[int, int] | None = None
        self.colour = bytes([1, 2, 3, 0])

    def size(self) -> tuple[int, int] | None:
        return self.there

    def draw(self, address: int, pitch: int) -> None:
        assert self.there is not None
        for row in range(self.there[1]):
            ctypes.memmove(address + row * pitch, self.colour * self.there[0], 4 * self.there[0])


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[Window]:
    """SDL's windows that were opened."""
    made: list[Window] = []

    class Seen(Window):
        def __init__(self, title: str, *, repeats: bool) -> None:
            super().__init__(title, repeats=repeats)
            made.append(self)

    monkeypatch.setattr("vc4lab.viewer.live.Window", Seen)
    return made


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch, source: Source, windows: list[Window]) -> Iterator[LiveWindow]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = LiveWindow("test", source, Sink())
    yield made
    made.close()


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_pictures_come_when_there_are_new_ones(
    window: LiveWindow, windows: list[Window], source: Source
) -> None:
    window.notice()
    time.sleep(0.1)
    assert window.painted == 0
    for count, size in enumerate(((64, 48), (64, 48), (80, 60)), 1):
        source.there = size
        window.notice()
        wait_for(lambda count=count: window.painted == count)
        surface = windows[0]._window.get_surface()
        width, height = surface.get_size()
        assert (width, height) == first_size(size, pygame.display.get_desktop_sizes()[0])
        for corner in ((0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)):
            assert surface.get_at(corner)[:3] == (3, 2, 1)


def test_a_picture_that_comes_while_another_is_painted_is_shown(
    monkeypatch: pytest.MonkeyPatch, window: LiveWindow, source: Source
) -> None:
    plain, again = source.draw, [True]

    def draw(address: int, pitch: int) -> None:
        plain(address, pitch)
        if again:
            again.pop()
            window.notice()

    monkeypatch.setattr(source, "draw", draw)
    source.there = 32, 32
    window.notice()
    wait_for(lambda: window.painted == 2)


def test_input_arrives_and_the_person_closes_it(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    closed: list[bool] = []
    sink = Sink()
    source.there = 32, 32
    window = LiveWindow("test", source, sink, lambda: closed.append(True))
    try:
        window.notice()
        wait_for(lambda: window.painted == 1)
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, scancode=pygame.KSCAN_Q))
        wait_for(lambda: bool(sink.got))
        pygame.event.post(pygame.event.Event(pygame.QUIT))
        wait_for(lambda: window.closed)
        assert sink.taken() == [("key", 16, True), ("key", 16, False)]
        assert closed == [True]
        window.stay()
    finally:
        window.close()


def test_without_a_display_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch, source: Source) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "no-such-driver")
    with pytest.raises(NoWindow, match="no window"):
        LiveWindow("test", source)


def test_a_display_that_goes_away_takes_the_window_along(
    monkeypatch: pytest.MonkeyPatch, window: LiveWindow, windows: list[Window], source: Source
) -> None:
    def lost() -> None:
        raise pygame.error("the display is gone")

    monkeypatch.setattr(windows[0], "_present", lost)
    source.there = 32, 32
    window.notice()
    wait_for(lambda: window.failure == "the display is gone")
    assert not window.closed
    window.stay()


def test_a_program_that_ends_while_its_first_picture_opens_the_window_has_one(
    monkeypatch: pytest.MonkeyPatch, window: LiveWindow, windows: list[Window], source: Source
) -> None:
    opens, opened = threading.Event(), threading.Event()
    fit = windows[0]._fit

    def slowly(size: tuple[int, int]) -> None:
        opens.set()
        assert opened.wait(60)
        fit(size)

    monkeypatch.setattr(windows[0], "_fit", slowly)
    source.there = 32, 32
    window.notice()
    assert opens.wait(60)
    stays = threading.Thread(target=window.stay)
    stays.start()
    stays.join(0.3)
    assert stays.is_alive()
    opened.set()
    wait_for(lambda: window.painted == 1)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    stays.join(60)
    assert not stays.is_alive()


def test_without_any_picture_there_is_nothing_to_stay_for(window: LiveWindow) -> None:
    window.notice()
    time.sleep(0.1)
    window.stay()
    assert not window.closed
