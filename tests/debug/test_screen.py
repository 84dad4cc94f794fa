"""The full screen: keys, the command line, and what is shown, by snapshots of the text.

VC4LAB_ACCEPT=1 takes new ones; look at them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.debug_sessions import saxpy, session_of

pytest.importorskip("textual", reason="the extra `debug`")

from textual.pilot import Pilot

from vc4lab.debug.programs import ProgramStage
from vc4lab.debug.screen.app import Screen
from vc4lab.debug.session import Session

SCREENS = Path(__file__).parent / "screens"
SIZE = (140, 40)


def shown(screen: Screen) -> str:
    """The whole screen as text."""
    rows = screen.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in row).rstrip() for row in rows) + "\n"


async def compare(pilot: Pilot[int], screen: Screen, name: str) -> None:
    """The screen beside its file, once the footer is drawn, which on a busy machine comes late."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("VC4LAB_ACCEPT"):
        path.write_text(shown(screen))
    for _ in range(100):
        if shown(screen) == path.read_text():
            break
        await pilot.pause(0.05)
    assert shown(screen) == path.read_text(), name


def drive(session: Session, steps: Callable[[Pilot[int], Screen], Awaitable[None]]) -> Screen:
    """Runs the app without a terminal."""
    screen = Screen(session)

    async def run() -> None:
        async with screen.run_test(size=SIZE) as pilot:
            await pilot.pause()
            await steps(pilot, screen)

    asyncio.run(run())
    return screen


async def press(pilot: Pilot[int], screen: Screen, *keys: str) -> None:
    """Keys, one after the other, each when what the last one has started is through."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot, screen)


async def settle(pilot: Pilot[int], screen: Screen) -> None:
    await pilot.pause()
    await screen.workers.wait_for_complete()
    await pilot.pause()


async def command(pilot: Pilot[int], screen: Screen, line: str) -> None:
    await pilot.press("colon")
    screen.query_one("#command").value = line  # type: ignore[attr-defined]
    await press(pilot, screen, "enter", "escape")


def test_a_session_by_keys() -> None:
    session = saxpy(qpus=2)

    async def steps(pilot: Pilot[int], screen: Screen) -> None:
        await compare(pilot, screen, "start")
        await command(pilot, screen, "break next qpu 1")
        await press(pilot, screen, "c", "s", "s")
        assert session.selected == 1
        await compare(pilot, screen, "stepped")
        await press(pilot, screen, "tab", "f", "f", "f")
        await compare(pilot, screen, "registers")
        await press(pilot, screen, "tab", "tab", "tab", "left")
        await compare(pilot, screen, "memory")
        await press(pilot, screen, "r")
        assert session.stop.breakpoint is session.breakpoints[1]

    drive(session, steps)


def test_keys_may_come_faster_than_steps_are_done() -> None:
    session = saxpy(qpus=1)

    async def steps(pilot: Pilot[int], screen: Screen) -> None:
        await pilot.press("s", "s", "s", "n", "left")  # none waits for the one before
        for _ in range(200):
            await settle(pilot, screen)
            if not screen.busy and not screen.asked:
                break
        assert session.turn == 3
        assert "pause first" not in shown(screen)

    drive(session, steps)


def test_other_keys() -> None:
    session = saxpy(qpus=3)

    async def steps(pilot: Pilot[int], screen: Screen) -> None:
        await press(pilot, screen, "n", "t")
        assert len(session.breakpoints.items) == 1
        await press(pilot, screen, "t")
        assert not session.breakpoints.items
        await press(pilot, screen, "right_square_bracket")
        assert session.selected == 1
        await press(
            pilot, screen, "left_square_bracket", "left_square_bracket", "down", "pageup", "shift+tab"
        )
        assert session.selected == 2
        assert "synchronisation" in shown(screen)
        await command(pilot, screen, "bogus")
        assert "there is no command 'bogus'" in shown(screen)
        await command(pilot, screen, "quit 3")

    assert drive(session, steps).return_value == 3


def test_pause_and_quit_while_it_runs() -> None:
    session = session_of("loop: brr -, loop\nnop\nnop\nnop\nnop ; nop ; thrend\nnop\nnop\n", budget=1 << 39)

    async def steps(pilot: Pilot[int], screen: Screen) -> None:
        await pilot.press("c")
        await pilot.pause()
        assert screen.busy
        await pilot.press("s")
        await pilot.press("p")
        await settle(pilot, screen)
        assert not screen.busy
        assert "paused" in shown(screen)
        await pilot.press("c")
        await pilot.press("q")

    assert drive(session, steps).return_value == 0


def test_words_without_a_source() -> None:
    from tests.support.debug_sessions import experiment_of

    from vc4lab.debug.source import Source
    from vc4lab.qpu.text.assembler import assemble

    code = assemble("mov ra0, 1\nnop ; nop ; thrend\nnop\nnop\n").bytes
    session = Session(ProgramStage(experiment_of(code), Source(Path("p.bin"), code)))

    async def steps(pilot: Pilot[int], screen: Screen) -> None:
        await press(pilot, screen, "s")
        text = shown(screen)
        assert "15827d80  mov ra0, 1" in text or "mov ra0, 1" in text
        assert "nop; nop; thrend" in text

    drive(session, steps)
