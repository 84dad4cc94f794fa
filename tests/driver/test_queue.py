"""The command queue: binary, printed and parsed form; queues that are none."""

import random
from typing import Any

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.commands import command_text, parse_command
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol.fields import Malformed

CLEAR = c.Clear(framebuffer=0x4100040, buffers=5, color=(0.1, 0.25, 1.0, 0.0), depth=1.0)


def some(declared: type[c.QueueCommand], rng: random.Random) -> Any:
    """A command of random words that is one."""
    while True:
        data = rng.randbytes(4 * declared.fixed)
        words = [
            rng.choice([int.from_bytes(data[at : at + 4], "little") & 0x3F7FFFFF, rng.randrange(9)])
            for at in range(0, len(data), 4)
        ]
        try:
            return declared.decode(b"".join(word.to_bytes(4, "little") for word in words))
        except Malformed:
            continue


@pytest.mark.parametrize("declared", c.COMMANDS.values())
def test_the_three_forms_say_the_same(declared: type[c.QueueCommand]) -> None:
    rng = random.Random(declared.number)
    for _ in range(50):
        command = some(declared, rng)
        data = command.encode_command()
        assert c.command_at(data, 0) == (command, len(data))
        assert parse_command(command_text(command)).encode_command() == data


def test_the_printed_form() -> None:
    assert command_text(CLEAR) == (
        "clear framebuffer=0x4100040 buffers=0x5 color=[0.1, 0.25, 1.0, 0.0] depth=1.0"
    )
    assert command_text(c.Draw(count=3, indexed=True)) == "draw count=3 indexed"
    assert command_text(c.Halt()) == "halt"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("paint", "no command 'paint'"),
        ("draw speed=3", "'speed' is none of mode"),
        ("draw mode=circles", "mode=circles"),
        ("draw count=many", "count=many"),
        ("draw count=-1", "Draw"),
        ("draw indexed=1", "'indexed' has no value"),
        ("draw count", "'count' has a value"),
        ("clear color=[1.0, 2.0]", "color=[1.0, 2.0]"),
        ("clear color=0.5", "color=0.5"),
        ("draw ???", "'???' is no name=value"),
    ],
)
def test_mistakes_in_text_are_named(line: str, part: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_command(line)
    assert part in str(caught.value)


def screen() -> VideoCoreScreen:
    return VideoCoreScreen(Reporter(), mesa_compiler())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "GL-017"),
        ((200).to_bytes(4, "little"), "GL-017"),
        ((c.Draw.number | 500 << 8).to_bytes(4, "little"), "GL-017"),
        (CLEAR.encode_command() + c.Halt().encode_command(), "GL-017"),
        (c.Draw(count=3, instances=1).encode_command() + c.Halt().encode_command(), "GL-017"),
        (c.Upload(resource=7).encode_command() + c.Halt().encode_command(), "GL-017"),
    ],
)
def test_a_queue_that_is_none(data: bytes, code: str) -> None:
    made = screen()
    made.processor.run(made.memory.keep(data) if data else made.memory.arena.start, len(data))
    assert [item.code for item in made.reporter.items] == [code]


def test_random_queues_end() -> None:
    rng = random.Random(5)
    for _ in range(200):
        made = made_once()
        parts = [some(rng.choice(list(c.COMMANDS.values())), rng) for _ in range(5)]
        data = b"".join(one.encode_command() for one in parts) + c.Halt().encode_command()
        made.processor.run(made.memory.keep(data), len(data))
        made.memory.arena.reset()


_MADE: list[VideoCoreScreen] = []


def made_once() -> VideoCoreScreen:
    """One screen for many queues."""
    if not _MADE:
        _MADE.append(screen())
    return _MADE[0]
