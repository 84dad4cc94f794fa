"""Clients of `vc4lab gl` that say anything: damaged sessions of vtest and damaged virgl streams."""

import contextlib
import os
import random
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, size_of, word

from vc4lab.diagnostics import Reporter
from vc4lab.mesa.events import GalliumTrace
from vc4lab.mesa.protocol import limits, messages, objects, state_commands, work_commands
from vc4lab.mesa.protocol.codes import Direction, Filter, ObjectKind, QueryType, Stage, Target
from vc4lab.mesa.protocol.command import BindObject, CreateObject
from vc4lab.mesa.protocol.commands import COMMANDS
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.protocol.messages import Message
from vc4lab.mesa.protocol.objects import OBJECTS
from vc4lab.mesa.server.server import Server
from vc4lab.mesa.store.software import SoftwareScreen

BGRA, DEPTH = Format.B8G8R8A8_UNORM, Format.S8_UINT_Z24_UNORM


def packed(message: Message, data: bytes = b"") -> bytes:
    """A message with its header."""
    payload = message.encode()
    length = len(payload) // 4 + -(-len(data) // 4)
    if message.length == "bytes":
        length = len(payload)
    return struct.pack("<II", length, message.number) + payload + data


def _create(version: int, handle: int, target: Target, format: Any, *size: int) -> bytes:
    fields = (handle, target, format, 2, *size, 1, 6 if target == Target.TEXTURE_CUBE else 1, 1, 0)
    if version:
        return packed(messages.ResourceCreate2(*fields, 4096))
    return packed(messages.ResourceCreate(*fields))


def _create_sampled(version: int, handle: int, format: Any) -> bytes:
    """A picture of four samples a pixel; it has no shared memory."""
    fields = (handle, Target.TEXTURE_2D, format, 2, 40, 33, 1, 1, 0, 4)
    if version:
        return packed(messages.ResourceCreate2(*fields, 0))
    return packed(messages.ResourceCreate(*fields))


def stream() -> bytes:
    """Commands of every kind that is executed."""
    view = objects.SamplerView(1, BGRA, swizzle_a=3)
    commands = [
        state_commands.CreateSubCtx(1),
        state_commands.SetSubCtx(1),
        CreateObject(1, objects.Surface(1, BGRA)),
        CreateObject(2, objects.Surface(2, DEPTH)),
        state_commands.SetFramebufferState(1, 2, (1,)),
        CreateObject(3, objects.RasterizerState()),
        BindObject(ObjectKind.RASTERIZER, 3),
        CreateObject(4, objects.DepthStencilAlphaState()),
        BindObject(ObjectKind.DSA, 4),
        CreateObject(5, objects.BlendState()),
        BindObject(ObjectKind.BLEND, 5),
        CreateObject(6, objects.VertexElements((objects.VertexElement(0, 0, 0, Format.R32_FLOAT),))),
        BindObject(ObjectKind.VERTEX_ELEMENTS, 6),
        CreateObject(7, view),
        CreateObject(8, objects.SamplerState()),
        state_commands.SetSamplerViews(Stage.FRAGMENT, 0, (7,)),
        state_commands.BindSamplerStates(Stage.FRAGMENT, 0, (8,)),
        CreateObject(9, objects.ShaderPart(Stage.VERTEX, 12, False, 3, 0, b"VERT\n 0: END")),
        state_commands.BindShader(9, Stage.VERTEX),
        state_commands.LinkShader(9),
        CreateObject(10, objects.Query(QueryType.TIME_ELAPSED, 0, 16, 3)),
        work_commands.BeginQuery(10),
        state_commands.SetViewportState(0, (state_commands.Viewport(),)),
        state_commands.SetScissorState(0, (state_commands.Scissor(),)),
        state_commands.SetVertexBuffers((state_commands.VertexBuffer(4, 0, 3),)),
        state_commands.SetIndexBuffer(3, 2, 0),
        state_commands.SetConstantBuffer(Stage.VERTEX, 0, bytes(64)),
        state_commands.SetStencilRef(1, 2),
        state_commands.SetBlendColor(),
        state_commands.SetClipState(),
        work_commands.Transfer3d(1, 0, 0, 0, 0, 0, 0, 0, 8, 4, 1, 0, Direction.TO_HOST),
        work_commands.ResourceInlineWrite(3, 0, 0, 0, 0, 0, 0, 0, 8, 1, 1, bytes(8)),
        work_commands.Clear(7, (1.0, 0.5, 0.25, 0.0), 0.5, 9),
        work_commands.DrawVbo(count=3, max_index=2),
        work_commands.Blit(
            *(15, Filter.LINEAR, False, False, False, (state_commands.Scissor(),)),
            *(4, 0, BGRA, (0, 4, 0, 8, -4, 1), 1, 0, BGRA, (0, 0, 0, 8, 4, 1)),
        ),
        work_commands.Blit(
            *(48, Filter.NEAREST, False, False, False, (state_commands.Scissor(),)),
            *(2, 0, DEPTH, (0, 0, 0, 4, 4, 1), 2, 0, DEPTH, (0, 0, 0, 8, 2, 1)),
        ),
        work_commands.ResourceCopyRegion(4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 8, 4, 1),
        CreateObject(11, objects.Surface(5, BGRA)),
        CreateObject(12, objects.Surface(6, DEPTH)),
        state_commands.SetFramebufferState(1, 12, (11,)),
        state_commands.SetSampleMask(5),
        work_commands.Clear(7, (1.0, 0.5, 0.25, 0.0), 0.5, 9),
        work_commands.DrawVbo(count=3, max_index=2),
        work_commands.Blit(
            *(15, Filter.NEAREST, False, False, False, (state_commands.Scissor(),)),
            *(1, 0, BGRA, (0, 0, 0, 8, 4, 1), 5, 0, BGRA, (0, 0, 0, 8, 4, 1)),
        ),
        work_commands.Blit(
            *(48, Filter.NEAREST, False, False, False, (state_commands.Scissor(),)),
            *(6, 0, DEPTH, (0, 0, 0, 8, 4, 1), 2, 0, DEPTH, (0, 0, 0, 8, 4, 1)),
        ),
        work_commands.ResourceCopyRegion(5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 40, 33, 1),
        work_commands.EndQuery(10),
        work_commands.GetQueryResult(10, 1),
        work_commands.CopyTransfer3d(1, 0, 0, 0, 0, 0, 0, 0, 8, 4, 1, 4, 0, True, True),
        work_commands.EndTransfers(bytes(16)),
    ]
    return b"".join(command.encode_command() for command in commands)


def session(version: int, damage: list[tuple[int, bytes]] | None = None) -> bytes:
    """A whole session; `damage`: writes into the stream in it."""
    commands = bytearray(stream())
    for place, data in damage or ():
        commands[place : place + len(data)] = data
    box = (0, 0, 0, 8, 4, 1)
    parts = [
        packed(messages.CreateRenderer(b"fuzz")),
        packed(messages.PingProtocolVersion()),
        packed(messages.ResourceBusyWait()),
        packed(messages.ProtocolVersion(version)),
        packed(messages.GetCaps2()),
        packed(messages.GetCaps()),
        _create(version, 1, Target.TEXTURE_2D, BGRA, 8, 4),
        _create(version, 2, Target.TEXTURE_2D, DEPTH, 8, 4),
        _create(version, 3, Target.BUFFER, Format.R8_UNORM, 256, 1),
        _create(version, 4, Target.TEXTURE_CUBE, BGRA, 8, 8),
        _create_sampled(version, 5, BGRA),
        _create_sampled(version, 6, DEPTH),
    ]
    if version:
        parts.append(packed(messages.TransferPut2(1, 0, *box, 128, 0)))
    else:
        parts.append(packed(messages.TransferPut(1, 0, 0, 0, *box, 128), bytes(128)))
    parts.append(packed(messages.SubmitCmd(bytes(commands))))
    if version:
        parts.append(packed(messages.TransferGet2(1, 0, *box, 128, 0)))
    else:
        parts.append(packed(messages.TransferGet(1, 0, 0, 0, *box, 128)))
    parts += [packed(messages.ResourceBusyWait(1, 1)), packed(messages.ResourceUnref(1))]
    return b"".join(parts)


def _any_command(rng: random.Random) -> bytes:
    """A declared command with any words, of a length that may fit."""
    number = rng.choice([*COMMANDS, 1, 1, 1])
    kind = rng.choice(list(OBJECTS)) if number <= 3 else 0
    declared = OBJECTS[kind] if number == 1 else COMMANDS[number]
    length = declared.fixed + rng.choice((0, 0, 0, 1, 2, 4, 6, 12)) + (number == 1)
    small = rng.random() < 0.7
    words = [rng.randrange(12) if small else word(rng) for _ in range(length)]
    return struct.pack(f"<{length + 1}I", number | kind << 8 | length << 16, *words)


@fuzzer
class GlSessionFuzzer(Fuzzer):
    """Damage to messages, to the commands in them, and commands made of any words."""

    name = "gl-sessions"
    quick = 60
    share = 60

    def __init__(self) -> None:
        self._whole = {version: session(version) for version in (0, 2)}
        self._stream = stream()

    def plan(self, rng: random.Random) -> Plan:
        version = rng.choice((0, 2))
        options = {
            "version": version,
            "chunk": rng.choice((1, 7, 64, 4096, 1 << 20)),
            "traced": rng.choice((True, False)),
        }
        kind = rng.choice(("messages", "stream", "stream", "commands"))
        if kind == "commands":
            made = tuple(_any_command(rng) for _ in range(rng.choice((1, 5, 30))))
            return Plan(kind, made, options, sum(map(len, made)))
        whole = self._whole[version] if kind == "messages" else self._stream
        edits = scribble(rng, 0, whole)
        return Plan(kind, tuple(edits), options, size_of(edits))

    def run(self, plan: Plan) -> None:
        version = plan.options["version"]
        if plan.scene == "messages":
            data = bytearray(self._whole[version])
            for place, new in plan.edits:
                data[place : place + len(new)] = new
        elif plan.scene == "stream":
            data = bytearray(session(version, list(plan.edits)))
        else:
            data = bytearray(self._whole[version])
            # Several times: what is known of a stream is followed by native code.
            data += packed(messages.SubmitCmd(b"".join(plan.edits))) * 3
        serve(bytes(data), version, plan.options["chunk"], traced=plan.options["traced"])


def serve(data: bytes, version: int, chunk: int, *, traced: bool) -> None:
    """A server gets these bytes in pieces, if `traced` with a trace that prints all it understands;
    without one, streams are walked over."""
    reporter = Reporter()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "socket", SoftwareScreen(reporter), reporter, protocol=version)
        if traced:
            GalliumTrace(server.listeners, lines.append)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with server, contextlib.closing(ours):
            server.add(theirs)
            (client,) = server.clients
            for start in range(0, len(data), chunk):
                _send(ours, server, data[start : start + chunk])
                if not server.clients:
                    break
            server.step(0)
            for context in client.contexts.values():
                assert context.state.lines()
            assert len(client.resources) < limits.RESOURCES
    assert all(item.code.startswith("GL-") for item in reporter.items)


def _send(ours: socket.socket, server: Server, data: bytes) -> None:
    """As far as the server takes it, reading what it answers."""
    while data and server.clients:
        with contextlib.suppress(BlockingIOError):
            data = data[ours.send(data) :]
        server.step(0)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            _, descriptors, _, _ = socket.recv_fds(ours, 1 << 20, 16)
            for one in descriptors:
                os.close(one)
