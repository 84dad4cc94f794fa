"""Programs of GLX get their data inline: Mesa asks the X server for pixels that it has not."""

import os
import socket
from pathlib import Path

import pytest
from tests.mesa.conftest import RunningServer

from vc4lab.mesa.protocol import messages
from vc4lab.mesa.server import client as server_side


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What this process has mapped, as a file that tests write."""
    folder = tmp_path / "proc" / str(os.getpid())
    folder.mkdir(parents=True)
    monkeypatch.setattr(server_side, "PROC", folder.parent)
    return folder / "maps"


LINE = "7f0000000000-7f0000001000 r-xp 00000000 08:01 42 /usr/lib/x86_64-linux-gnu/"


@pytest.mark.parametrize(
    ("libraries", "version"),
    [
        (("libEGL_mesa.so.0.0.0", "libGLX.so.0.0.0"), 2),
        (("libGLX.so.0.0.0", "libGLX_mesa.so.0.0.0"), 0),
        ((), 2),
    ],
)
def test_the_version_for_what_a_program_uses(
    running: RunningServer, maps: Path, libraries: tuple[str, ...], version: int
) -> None:
    """libGLX alone only finds the way to a driver: programs of EGL may have it, too."""
    maps.write_text("".join(f"{LINE}{one}\n" for one in libraries))
    client = running.client()
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, version)


def test_processes_that_cannot_be_looked_at(running: RunningServer, maps: Path) -> None:
    client = running.client()
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, 2)
    ours, other = socket.socketpair()
    ours.close()
    other.close()
    assert not server_side.uses_glx(ours)
