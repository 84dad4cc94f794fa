"""A server that draws with a V3D, and a client that speaks as Mesa does."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver.drawing import Drawing
from tests.mesa.conftest import RawClient, RunningServer

from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.driver.screen import VideoCoreScreen
from vc4lab.mesa.protocol import messages


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[RunningServer]:
    """A server of version 2 on a V3D."""
    server = RunningServer(tmp_path / "socket", lambda reporter: VideoCoreScreen(reporter, mesa_compiler()))
    yield server
    server.close()


@pytest.fixture
def client(gpu: RunningServer) -> Iterator[RawClient]:
    """A client that has said its name and asked for version 2."""
    client = gpu.client()
    client.send(messages.CreateRenderer(b"test\0"))
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, 2)
    yield client
    client.socket.close()


@pytest.fixture
def drawing(client: RawClient) -> Drawing:
    """Textures, buffers, state and draws of that client."""
    return Drawing(client)
