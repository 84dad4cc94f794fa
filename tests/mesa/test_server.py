"""Clients of the socket: both versions, resources, transfers, several at a time."""

import os
import stat
import struct
from pathlib import Path

import pytest
from tests.mesa.conftest import RawClient, RunningServer
from tests.mesa.made import BGRA, buffer, frame_buffer, read, shader, texture

from vc4lab.diagnostics import Reporter
from vc4lab.mesa.events import GalliumTrace
from vc4lab.mesa.protocol import messages, objects, state_commands, work_commands
from vc4lab.mesa.protocol.codes import Direction, Filter, ObjectKind, QueryType, Stage, Target
from vc4lab.mesa.protocol.command import BindObject, CreateObject, DestroyObject
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.server.server import Server
from vc4lab.mesa.store.software import SoftwareScreen


def test_opening_of_version_2(running: RunningServer) -> None:
    """As Mesa does it: name, ping and wait together, version, both capabilities together."""
    client = running.client()
    client.send(messages.CreateRenderer(b"glmark2-es2\0"))
    client.send(messages.PingProtocolVersion())
    client.send(messages.ResourceBusyWait())
    assert client.words(2) == (0, 10)
    assert client.words(3) == (1, 7, 0)
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, 2)
    client.send(messages.GetCaps2())
    client.send(messages.GetCaps())
    assert client.words(2) == (1377, 2)
    whole = client.read(1376)
    assert client.words(2) == (309, 1)
    assert client.read(308) == whole[:308]
    assert running.server.clients[0].name == "glmark2-es2"


def test_a_server_of_version_0_is_silent(tmp_path: Path) -> None:
    """It answers only the wait; contents come and go through the socket."""
    running = RunningServer(tmp_path / "socket", protocol=0)
    try:
        client = running.client()
        client.send(messages.PingProtocolVersion())
        client.wait()
        client.send(messages.ResourceCreate(3, Target.TEXTURE_2D, BGRA, 2, 4, 2, 1, 1, 0, 0))
        data = bytes(range(32))
        client.send(messages.TransferPut(3, 0, 0, 0, 0, 0, 0, 4, 2, 1, 32), data)
        client.send(messages.TransferGet(3, 0, 0, 0, 1, 0, 0, 2, 2, 1, 16))
        assert client.read(16) == data[4:12] + data[20:28]
        client.send(messages.TransferGet(3, 0, 16, 0, 0, 0, 0, 2, 2, 1, 32))
        assert client.read(32) == data[:8] + bytes(8) + data[16:24] + bytes(8)
        client.send(messages.TransferPut(3, 0, 0, 0, 0, 0, 0, 1, 1, 1, 3), b"abc")
        client.send(messages.TransferGet(3, 9, 0, 0, 0, 0, 0, 1, 1, 1, 5))
        assert client.read(5) == bytes(5)
        client.wait()
        assert running.codes() == ["GL-005", "GL-005"]
    finally:
        running.close()


def test_the_socket_is_the_user_s(running: RunningServer) -> None:
    assert stat.S_IMODE(os.stat(running.server.path).st_mode) == 0o600


def test_resources_and_shared_memory(running: RunningServer, client: RawClient) -> None:
    """Memory is staging only: what is uploaded stays when it changes."""
    client.send(texture(5, 8 * 4 * 4 + 4 * 2 * 4, levels=2))
    memory = client.memory(8 * 4 * 4 + 4 * 2 * 4)
    memory[:] = bytes(i & 0xFF for i in range(len(memory)))
    client.send(messages.TransferPut2(5, 0, 0, 0, 0, 8, 4, 1, 128, 0))
    client.send(messages.TransferPut2(5, 1, 1, 0, 0, 2, 2, 1, 24, 128 + 4))
    client.wait()
    first = bytes(memory)
    memory[:] = bytes(len(memory))
    client.send(messages.TransferGet2(5, 0, 0, 0, 0, 8, 4, 1, 128, 0))
    client.wait()
    assert memory[:128] == first[:128]
    client.send(messages.TransferGet2(5, 1, 0, 0, 0, 4, 2, 1, 32, 128))
    client.wait()
    expected = bytes(4) + first[132:140] + bytes(4)
    assert memory[128:144] == expected
    client.send(messages.ResourceUnref(5))
    client.send(messages.TransferGet2(5, 0, 0, 0, 0, 8, 4, 1, 128, 0))
    client.wait()
    assert running.codes() == ["GL-004"]


def test_shared_memory_cannot_shrink(client: RawClient) -> None:
    """Else the server's next access would be a bus error."""
    client.send(buffer(5, 4096))
    _data, descriptors, _, _ = __import__("socket").recv_fds(client.socket, 1, 1)
    with pytest.raises(PermissionError):
        os.ftruncate(descriptors[0], 16)
    os.close(descriptors[0])
    client.wait()


def test_transfers_in_the_stream(client: RawClient, running: RunningServer) -> None:
    """With strides, with the layers of a cube, and the words after END_TRANSFERS skipped."""
    client.send(texture(5, 6 * 16, 2, 2, target=Target.TEXTURE_CUBE, array_size=6))
    memory = client.memory(96)
    memory[:] = bytes(range(96))
    client.submit(
        work_commands.Transfer3d(5, 0, 0, 0, 0, 0, 0, 0, 2, 2, 6, 0, Direction.TO_HOST),
        work_commands.EndTransfers(b"\xff" * 400),
    )
    client.wait()
    memory[:] = bytes(96)
    client.submit(work_commands.Transfer3d(5, 0, 0, 4, 8, 1, 0, 4, 1, 2, 2, 10, Direction.FROM_HOST))
    client.wait()
    texels = [bytes(range(n, n + 4)) for n in (68, 76, 84, 92)]
    assert memory[10:26] == b"".join(texels)
    assert not running.codes()


def test_clears(running: RunningServer, client: RawClient) -> None:
    frame_buffer(client)
    client.submit(
        work_commands.Clear(7, (1.0, 0.5, 0.0, 1.0), 1.0, 0x55), work_commands.Clear(1, (0.0,) * 4, 0.5, 0)
    )
    read(client, 5)
    read(client, 6)
    assert client.colour[:4] == bytes((0, 128, 255, 255))
    assert client.colour[:] == client.colour[:4] * 32
    assert struct.unpack("<I", client.depth[:4])[0] == 0x800000 << 8 | 0x55
    assert client.depth[:] == client.depth[:4] * 32
    assert not running.codes()


def test_blits_and_copies(running: RunningServer, client: RawClient) -> None:
    """Upside down, scaled with a filter, to another format; a region as it is."""
    frame_buffer(client)
    client.colour[:] = b"".join(bytes((row * 60, x * 30, 9, 255)) for row in range(4) for x in range(8))
    source = bytes(client.colour)
    client.send(messages.TransferPut2(5, 0, 0, 0, 0, 8, 4, 1, 128, 0))
    client.send(texture(7, 128, format=Format.R8G8B8A8_UNORM))
    target = client.memory(128)
    rgba = Format.R8G8B8A8_UNORM
    flipped = work_commands.Blit(
        15, Filter.NEAREST, dst=7, dst_format=rgba, dst_box=(0, 4, 0, 8, -4, 1),
        src=5, src_format=BGRA, src_box=(0, 0, 0, 8, 4, 1),
    )  # fmt: skip
    client.submit(flipped)
    read(client, 7)
    for row in range(4):
        for x in range(8):
            blue, green, red, alpha = source[((3 - row) * 8 + x) * 4 :][:4]
            assert target[(row * 8 + x) * 4 :][:4] == bytes((red, green, blue, alpha))
    half = work_commands.Blit(
        15, Filter.LINEAR, dst=7, dst_format=rgba, dst_box=(0, 0, 0, 4, 2, 1),
        src=5, src_format=BGRA, src_box=(0, 0, 0, 8, 4, 1),
    )  # fmt: skip
    client.submit(half, work_commands.ResourceCopyRegion(7, 0, 6, 0, 0, 5, 0, 1, 1, 0, 2, 2, 1))
    read(client, 7)
    assert target[:4] == bytes((9, 15, 30, 255))  # the mean of four texels
    assert target[24:32] == source[36:44]
    assert target[56:64] == source[68:76]
    assert not running.codes()


def test_depth_is_blitted_to_a_format_without_stencil(running: RunningServer, client: RawClient) -> None:
    """The bits of depth lie alike in both; those beside them stay."""
    bind = {"bind": 1}
    client.send(texture(8, 128, format=Format.S8_UINT_Z24_UNORM, **bind))
    from_ = client.memory(128)
    client.send(texture(9, 128, format=Format.X8Z24_UNORM, **bind))
    to = client.memory(128)
    from_[:] = struct.pack("<32I", *(number << 8 | 0xAA for number in range(32)))
    to[:] = struct.pack("<32I", *[0x55] * 32)
    for handle in (8, 9):
        client.send(messages.TransferPut2(handle, 0, 0, 0, 0, 8, 4, 1, 128, 0))
    client.submit(
        work_commands.Blit(
            16, Filter.NEAREST, dst=9, dst_format=Format.X8Z24_UNORM, dst_box=(0, 0, 0, 8, 4, 1),
            src=8, src_format=Format.S8_UINT_Z24_UNORM, src_box=(0, 0, 0, 8, 4, 1),
        )
    )  # fmt: skip
    read(client, 9)
    assert struct.unpack("<32I", to) == tuple(number << 8 | 0x55 for number in range(32))
    assert not running.codes()


def test_state_of_a_draw(running: RunningServer, client: RawClient) -> None:
    """Everything that was bound is there, by Gallium's names; the draw itself is reported once."""
    seen = []
    running.screen.draw = lambda state, command: seen.append((state, command))  # type: ignore[method-assign]
    frame_buffer(client)
    client.send(buffer(9, 256))
    client.memory(256)
    text = b"FRAG\n  0: END\n\0"
    element = objects.VertexElement(0, 0, 0, Format.R32G32B32_FLOAT)
    client.submit(
        CreateObject(20, objects.RasterizerState(depth_clip=True)),
        BindObject(ObjectKind.RASTERIZER, 20),
        CreateObject(21, objects.BlendState(dither=True)),
        BindObject(ObjectKind.BLEND, 21),
        CreateObject(22, objects.VertexElements((element,))),
        BindObject(ObjectKind.VERTEX_ELEMENTS, 22),
        shader(23, Stage.FRAGMENT, text),
        state_commands.BindShader(23, Stage.FRAGMENT),
        state_commands.BindShader(0, Stage.GEOMETRY),
        state_commands.SetConstantBuffer(Stage.FRAGMENT, 0, struct.pack("<4f", 1, 2, 3, 4)),
        CreateObject(24, objects.SamplerView(5, BGRA)),
        CreateObject(25, objects.SamplerState(max_lod=4.0)),
        state_commands.SetSamplerViews(Stage.FRAGMENT, 1, (24,)),
        state_commands.BindSamplerStates(Stage.FRAGMENT, 1, (25,)),
        state_commands.SetVertexBuffers((state_commands.VertexBuffer(12, 24, 9),)),
        state_commands.SetIndexBuffer(9, 2, 100),
        state_commands.SetViewportState(0, (state_commands.Viewport((4.0, -2.0, 0.5)),)),
        state_commands.SetScissorState(0, (state_commands.Scissor(1, 2, 3, 4),)),
        work_commands.DrawVbo(count=3, max_index=2, indexed=1),
    )
    client.wait()
    ((state, command),) = seen
    assert command.count == 3
    assert state.rasterizer == objects.RasterizerState(depth_clip=True)
    assert state.blend.dither
    assert state.dsa is None
    assert state.vertex_elements.elements == (element,)
    assert state.fragment.shader.text == "FRAG\n  0: END\n"
    assert struct.unpack("<4f", state.fragment.constants[0]) == (1, 2, 3, 4)
    assert state.fragment.views[0] is None
    assert state.fragment.views[1].resource.handle == 5
    assert state.fragment.samplers[1] == objects.SamplerState(max_lod=4.0)
    assert state.vertex_buffers[0].resource.handle == 9
    assert state.index_buffer.index_size == 2
    assert state.framebuffer.size == (8, 4)
    lines = state.lines()
    assert any(line.startswith("cbuf 0: resource 5 (texture_2d B8G8R8A8_UNORM 8x4)") for line in lines)
    assert any("scissors: [(minx=1 miny=2 maxx=3 maxy=4)]" in line for line in lines)
    client.submit(work_commands.DrawVbo(count=3, max_index=2, indexed=1))
    client.wait()
    assert seen[1] == seen[0]
    for name in ("blend", "rasterizer", "vertex_buffers", "index_buffer", "viewports"):
        assert getattr(seen[1][0], name) is getattr(seen[0][0], name)
    assert not running.codes()


def test_draws_are_reported_once(running: RunningServer, client: RawClient) -> None:
    client.submit(*[work_commands.DrawVbo(count=3)] * 5)
    client.wait()
    assert running.codes() == ["GL-010"]
    assert running.screen.draws == 5


def test_shaders_in_parts(running: RunningServer, client: RawClient) -> None:
    text = b"VERT\n" + b"DCL IN[0]\n" * 50 + b"  0: END\n\0"
    parts = [text[at : at + 100] for at in range(0, len(text), 100)]
    commands = [CreateObject(3, objects.ShaderPart(Stage.VERTEX, len(text), False, 9, 0, parts[0]))]
    for number, part in enumerate(parts[1:], 1):
        piece = objects.ShaderPart(Stage.VERTEX, number * 100, True, 9, 0, part)
        commands.append(CreateObject(3, piece))
    client.submit(*commands)
    client.wait()
    made = running.server.clients[0].contexts[0].objects[3]
    assert made.text.encode() + b"\0" == text
    lost = objects.ShaderPart(Stage.VERTEX, 300, True, 9, 0, b"x")
    client.submit(CreateObject(4, lost), commands[0], CreateObject(3, lost))
    client.wait()
    assert running.codes() == ["GL-004", "GL-002"]


def test_contexts_have_objects_of_their_own(running: RunningServer, client: RawClient) -> None:
    create = CreateObject(7, objects.BlendState())
    bind = BindObject(ObjectKind.BLEND, 7)
    client.submit(
        state_commands.CreateSubCtx(1), state_commands.SetSubCtx(1), create, bind,
        state_commands.CreateSubCtx(2), state_commands.SetSubCtx(2),
    )  # fmt: skip
    client.wait()
    assert not running.codes()
    client.submit(bind)
    client.wait()
    assert running.codes() == ["GL-004"]
    client.submit(
        state_commands.SetSubCtx(1), bind, DestroyObject(ObjectKind.BLEND, 7),
        state_commands.DestroySubCtx(1), state_commands.SetSubCtx(1),
    )  # fmt: skip
    client.wait()
    assert "there is no context 1" in running.reporter.items[-1].message
    assert set(running.server.clients[0].contexts) == {0, 2}


def test_queries_are_answered(running: RunningServer, client: RawClient) -> None:
    """A client waits until its query says that it is done."""
    client.send(buffer(5, 64))
    memory = client.memory(64)
    client.submit(
        CreateObject(3, objects.Query(QueryType.OCCLUSION_COUNTER, 0, 16, 5)),
        work_commands.BeginQuery(3), work_commands.EndQuery(3), work_commands.GetQueryResult(3, 1),
        CreateObject(4, objects.Query(QueryType.TIMESTAMP, 0, 32, 5)), work_commands.EndQuery(4),
        CreateObject(6, objects.Query(QueryType.TIMESTAMP, 0, 60, 5)), work_commands.EndQuery(6),
    )  # fmt: skip
    client.wait()
    assert struct.unpack_from("<IIQ", memory, 16) == (1, 8, 0)
    assert struct.unpack_from("<II", memory, 32) == (1, 8)
    assert running.codes() == ["GL-010", "GL-005"]


def test_several_clients(running: RunningServer) -> None:
    """Each has handles of its own; one that ends in the middle leaves the others alone."""
    clients = [running.client() for _ in range(3)]
    for number, one in enumerate(clients):
        one.send(messages.CreateRenderer(b"c%d\0" % number))
        one.send(buffer(1, 32))
        one.memory(32)[:] = bytes([number] * 32)
    clients[1].socket.sendall(b"\x20\0\0\0\x06\0\0\0half")
    clients[1].socket.close()
    for one in (clients[0], clients[2]):
        one.wait()
    assert [one.name for one in running.server.clients] == ["c0", "c2"]
    assert running.codes() == ["GL-008"]


def test_the_trace_prints_everything(running: RunningServer) -> None:
    lines: list[str] = []
    GalliumTrace(running.server.listeners, lines.append)
    client = running.client()
    client.send(messages.CreateRenderer(b"prog\0"))
    client.send(messages.ProtocolVersion(2))
    client.words(3)
    client.send(texture(5, 0))
    client.submit(shader(3, Stage.FRAGMENT, b"FRAG\n  0: END\n\x07\0"), work_commands.DrawVbo(count=3))
    client.wait()
    expected = [
        "1 prog PROTOCOL_VERSION version=2",
        "1 prog RESOURCE_CREATE2 handle=5 target=texture_2d format=B8G8R8A8_UNORM "
        "bind=render_target width=8 height=4 depth=1 array_size=1 last_level=0 nr_samples=0 "
        "data_size=0",
        "1.0 prog     | FRAG",
        "1.0 prog     |   0: END",
        "1.0 prog     | ?",
        "1.0 prog   DRAW_VBO points start=0 count=3 min_index=0 max_index=0 instance_count=0 "
        "start_instance=0",
    ]
    for line in expected:
        assert line in lines, lines


def test_an_occupied_path_is_an_error(running: RunningServer) -> None:
    reporter = Reporter()
    with pytest.raises(OSError, match="in use"):
        Server(running.server.path, SoftwareScreen(reporter), reporter)
    with pytest.raises(ValueError, match="protocol 1"):
        Server(running.server.path, SoftwareScreen(reporter), reporter, protocol=1)


def test_two_servers_of_a_process(tmp_path: Path) -> None:
    """Each reads what its own clients send, in a thread of its own."""
    servers = [RunningServer(tmp_path / name) for name in ("first", "second")]
    try:
        clients = [one.client() for one in servers]
        names = [b"a" * 4000, b"b" * 4000]
        for _ in range(200):
            for client, name in zip(clients, names, strict=True):
                client.send(messages.CreateRenderer(name))
        for client in clients:
            client.wait()
        for server, name in zip(servers, names, strict=True):
            assert server.codes() == []
            assert [one.name for one in server.server.clients] == [name.decode()]
    finally:
        for server in servers:
            server.close()
