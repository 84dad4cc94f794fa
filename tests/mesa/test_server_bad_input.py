"""Clients of the socket that are wrong or do not read: the server lives on for the others."""

import struct

import pytest
from tests.mesa.conftest import RawClient, RunningServer
from tests.mesa.made import BGRA, frame_buffer, read, texture

from vc4lab.mesa.protocol import messages, objects, state_commands, work_commands
from vc4lab.mesa.protocol.codes import Direction, ObjectKind, Stage
from vc4lab.mesa.protocol.command import BindObject, CreateObject
from vc4lab.mesa.protocol.formats import Format


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (struct.pack("<II", 0, 99), "GL-001"),
        (struct.pack("<IIII", 2, 3, 1, 2), "GL-001"),
        (struct.pack("<II", 0xFFFFFFFF, 6), "GL-006"),
        (struct.pack("<II", 1 << 30, 8), "GL-006"),
        (struct.pack("<13I", 11, 5, 1, *[0] * 9, 0xFFFFFFFF), "GL-006"),
        (struct.pack("<13I", 11, 4, 1, *[0] * 9, 0xFFFFFFFF), "GL-006"),
        (struct.pack("<II", 3, 14), "GL-001"),
    ],
)
def test_bad_messages_end_the_connection(running: RunningServer, data: bytes, code: str) -> None:
    """The only answer that the protocol has; the server lives on."""
    bad, good = running.client(), running.client()
    bad.socket.sendall(data)
    assert bad.is_closed()
    good.wait()
    assert running.codes() == [code]


@pytest.mark.parametrize(
    "changes",
    [
        {"width": 0},
        {"width": 1 << 14},
        {"height": 1 << 31},
        {"levels": 9},
        {"levels": 0x80000000},
        {"array_size": 1 << 30},
        {"format": Format.NONE},
        {"width": 8192, "height": 8192, "format": Format.R32G32B32A32_FLOAT},
        {"nr_samples": 8},
        {"handle": 0},
        {"size": 1 << 31},
    ],
)
def test_impossible_resources_end_the_connection(running: RunningServer, changes: dict[str, int]) -> None:
    """The client waits for a descriptor that does not come."""
    client = running.client()
    client.send(messages.ProtocolVersion(2))
    client.words(3)
    client.send(texture(**{"handle": 5, "size": 64, **changes}))
    assert client.is_closed()
    assert running.codes()[0] in ("GL-004", "GL-006", "GL-007")


def test_bad_commands_are_left_out(running: RunningServer, client: RawClient) -> None:
    """Each is named; the good ones between them are executed."""
    frame_buffer(client)
    good = work_commands.Clear(4, (1.0,) * 4)
    client.submit(
        state_commands.SetFramebufferState(1, 99, (15,)),
        state_commands.SetFramebufferState(2, 0, (15,)),
        BindObject(ObjectKind.RASTERIZER, 15),
        BindObject(ObjectKind.QUERY, 15),
        state_commands.SetVertexBuffers((state_commands.VertexBuffer(0, 0, 77),)),
        state_commands.SetIndexBuffer(5, 3, 0),
        state_commands.SetSamplerViews(Stage.FRAGMENT, 31, (0, 0)),
        CreateObject(17, objects.Surface(5, BGRA, 9)),
        CreateObject(18, objects.Surface(5, BGRA, 0, 0, 7)),
        CreateObject(0, objects.BlendState()),
        work_commands.Transfer3d(5, 0, 0, 0, 0, 0, 0, 0, 9, 4, 1, 0, Direction.TO_HOST),
        work_commands.Transfer3d(5, 0, 0, 0, 0, 0, 0, 0, 8, 4, 1, 4, Direction.TO_HOST),
        work_commands.Transfer3d(5, 0, 0, 1 << 31, 0, 0, 0, 0, 8, 4, 1, 0, Direction.FROM_HOST),
        work_commands.Transfer3d(5, 0, 0, 0, 0, 0xFFFFFFFF, 0, 0, 8, 4, 1, 0, Direction.TO_HOST),
        work_commands.ResourceCopyRegion(5, 0, 4, 0, 0, 6, 0, 0, 0, 0, 8, 4, 1),
        work_commands.DrawVbo(count=3, indirect=5),
        struct.pack("<II", 25 | 1 << 16, 0),
        good,
    )
    read(client, 5)
    assert client.colour[:4] == b"\xff" * 4
    assert set(running.codes()) <= {"GL-002", "GL-004", "GL-005", "GL-006", "GL-007"}
    assert len(running.reporter.items) == 17


def test_a_client_that_does_not_read(running: RunningServer) -> None:
    """Its answers wait, it is not read any more, and the others are served."""
    lazy, good = running.client(), running.client()
    lazy.socket.setblocking(False)
    asked = struct.pack("<II", 0, 9) * 1000
    sent = 0
    try:
        for _ in range(1000):
            sent += lazy.socket.send(asked)
    except BlockingIOError:
        pass
    good.wait()
    assert sent < len(asked) * 1000
    lazy.socket.setblocking(True)
    lazy.socket.settimeout(60)
    assert len(lazy.read(1384 * 100)) == 1384 * 100
    good.wait()
    assert not running.codes()
