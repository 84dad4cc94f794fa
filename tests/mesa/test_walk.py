"""Streams walked over by native code: the same draws, states and messages as command by command."""

import os
import random
import struct
from typing import Any

import pytest
from tests.mesa.made import BGRA, buffer, shader, texture

from vc4lab.diagnostics import Reporter
from vc4lab.mesa.protocol import messages, objects, state_commands, work_commands
from vc4lab.mesa.protocol.capabilities import videocore
from vc4lab.mesa.protocol.codes import ObjectKind, Primitive, Stage
from vc4lab.mesa.protocol.command import BindObject, Command, CreateObject, DestroyObject, Nop
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.server.client import Client
from vc4lab.mesa.server.connection import Shared
from vc4lab.mesa.state import steps, walk
from vc4lab.mesa.state.pipe import Framebuffer, PipeState
from vc4lab.mesa.store.software import SoftwareScreen

TEXTS = {
    Stage.VERTEX: (b"VERT\n  0: END\n\0", b"VERT\n  0: NOP\n  1: END\n\0"),
    Stage.FRAGMENT: (b"FRAG\n  0: END\n\0", b"FRAG\n  0: NOP\n  1: END\n\0"),
}


class Unread:
    """Answers that no test reads."""

    is_empty = True

    def send(self, data: bytes, descriptor: int | None = None) -> None:
        if descriptor is not None:
            os.close(descriptor)


class Watched:
    """A client without a socket, and all that its streams lead to."""

    def __init__(self, *, in_objects: bool) -> None:
        reporter = Reporter()
        self.screen = SoftwareScreen(reporter)
        self.events: list[Any] = []
        self.screen.draw = self._draw  # type: ignore[method-assign]
        self.screen.clear = self._clear  # type: ignore[method-assign]
        reporter.listeners.append(lambda item: self.events.append((item.code, item.message)))
        self.shared = Shared(self.screen, reporter, 2, videocore().encode())
        self.client = Client(self.shared, None, 1)  # type: ignore[arg-type]
        self.client.outbox = Unread()  # type: ignore[assignment]
        if in_objects:
            self.shared.listeners.command.subscribe(lambda _event: None)

    def _draw(self, state: PipeState, command: work_commands.DrawVbo) -> None:
        self.events.append((repr(state.lines()), state.vertex.constants, state.fragment.constants,
                            repr(command)))  # fmt: skip

    def _clear(self, framebuffer: Framebuffer, command: work_commands.Clear) -> None:
        surfaces = [
            surface and (repr(surface.state), str(surface.resource))
            for surface in (*framebuffer.cbufs, framebuffer.zsbuf)
        ]
        self.events.append(("clear", repr(surfaces), repr(command)))

    def send(self, *sent: messages.Message) -> None:
        for one in sent:
            data = one.encode()
            self.client._input += struct.pack("<II", len(data) // 4, one.number) + data
            self.client.handle_waiting()


def _objects(sent: random.Random, handle: int) -> CreateObject:
    """An object of any kind that is bound; few different ones."""
    number = sent.randrange(3)
    return sent.choice([
        CreateObject(handle, objects.BlendState(dither=bool(number & 1))),
        CreateObject(handle, objects.RasterizerState(point_size=float(number))),
        CreateObject(handle, objects.DepthStencilAlphaState(depth_enabled=bool(number & 1))),
        CreateObject(handle, objects.VertexElements(
            (objects.VertexElement(4 * number, 0, 0, Format.R32G32B32_FLOAT),))),
        CreateObject(handle, objects.SamplerState(max_lod=float(number))),
        CreateObject(handle, objects.SamplerView(1 + number, BGRA)),
        CreateObject(handle, objects.Surface(1 + number, BGRA)),
        *(shader(handle, stage, TEXTS[stage][number & 1]) for stage in TEXTS),
    ])  # fmt: skip


def _setting(sent: random.Random) -> Command:
    """Mostly right: handles 1 to 12 are objects of any kind, 1 to 6 resources."""
    handle, number = sent.randrange(13), sent.randrange(3)
    stage = sent.choice([*TEXTS, *TEXTS, Stage.GEOMETRY])
    s = state_commands
    return sent.choice([
        lambda: BindObject(sent.choice([*ObjectKind][:4]), handle),
        lambda: s.BindShader(handle, stage),
        lambda: s.SetViewportState(number & 1, (s.Viewport((1.0, float(number), 1.0)),)),
        lambda: s.SetScissorState(0, (s.Scissor(number, 0, 8, 8),)),
        lambda: s.SetFramebufferState(1, sent.choice([0, handle]), (handle,)),
        lambda: s.SetVertexBuffers(tuple(
            s.VertexBuffer(4 * number, sent.choice([0, 0, 64, 96]), sent.randrange(7))
            for _ in range(number)
        )),
        lambda: s.SetIndexBuffer(sent.randrange(7), sent.choice([1, 2, 3, 4]), number),
        lambda: s.SetSamplerViews(stage, number, (handle,)),
        lambda: s.BindSamplerStates(stage, number, (handle, 0)),
        lambda: s.SetStencilRef(number, 1),
        lambda: s.SetBlendColor((float(number), 0.0, 0.0, 1.0)),
        lambda: s.SetSampleMask(number),
        lambda: s.LinkShader(handle),
        lambda: s.SetConstantBuffer(stage, 0, sent.randbytes(4 * sent.randrange(5))),
        lambda: s.SetConstantBuffer(stage, number, bytes([number] * 8)),
        lambda: Nop((1, 2)),
        lambda: work_commands.EndTransfers(sent.randbytes(4 * number)),
    ])()  # fmt: skip


def _draw(sent: random.Random) -> bytes:
    count = sent.randrange(4)
    modes = (Primitive.TRIANGLES, Primitive.PATCHES)
    data = bytearray(
        work_commands.DrawVbo(
            start=sent.randrange(3), count=count, mode=modes[not sent.randrange(9)],
            instance_count=1, index_bias=-count,
        ).encode_command()
    )  # fmt: skip
    if not sent.randrange(8):
        struct.pack_into("<I", data, 4 * sent.randrange(1, len(data) // 4), sent.randrange(1 << 32))
    return bytes(data)


def _clear(sent: random.Random) -> bytes:
    """Seldom with other words than a clear has."""
    colour = (float(sent.randrange(3)), 0.25, -1.0, 1.0)
    data = work_commands.Clear(sent.randrange(8), colour, 0.1, 7).encode_command()
    if not sent.randrange(8):
        words = sent.randrange(10)
        data = struct.pack("<I", work_commands.Clear.number | words << 16) + sent.randbytes(4 * words)
    return data


def _frame(sent: random.Random) -> bytes:
    """What comes again and again."""
    parts = []
    for _ in range(sent.randrange(1, 12)):
        if not sent.randrange(3):
            parts.append(state_commands.SetSubCtx(sent.choice([0, 0, 1])).encode_command())
        parts += [_clear(sent)] * (not sent.randrange(3))
        parts += [_setting(sent).encode_command() for _ in range(sent.randrange(4))]
        parts += [_draw(sent)] * sent.randrange(3)
    return b"".join(parts)


def _change(sent: random.Random) -> list[bytes]:
    """What makes that steps lead elsewhere, or ends a stream."""
    handle = sent.randrange(1, 13)
    return [
        sent.choice([
            lambda: _objects(sent, handle).encode_command(),
            lambda: DestroyObject(ObjectKind.BLEND, handle).encode_command(),
            lambda: state_commands.SetSubCtx(sent.randrange(3)).encode_command(),
            lambda: state_commands.CreateSubCtx(1).encode_command(),
            lambda: state_commands.DestroySubCtx(1).encode_command(),
            lambda: work_commands.Clear(4, (0.0, 0.0, 0.0, 0.0), 1.0, 0).encode_command(),
            lambda: sent.randbytes(4 * sent.randrange(1, 3)),
        ])()
        for _ in range(sent.randrange(3))
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
def test_the_same_as_command_by_command(seed: int) -> None:
    """Streams that repeat, between changes of what their handles stand for."""
    ways = [Watched(in_objects=False), Watched(in_objects=True)]
    sent = random.Random(seed)
    frames = [_frame(sent) for _ in range(3)]
    start = [texture(one, 0) for one in (1, 2, 3)] + [buffer(one, 64 << one) for one in (4, 5, 6)]
    made = b"".join(_objects(sent, one).encode_command() for one in range(1, 13))
    for number in range(40):
        message: list[Any] = [*start, messages.SubmitCmd(made)] if not number else []
        if not sent.randrange(5):
            handle = sent.randrange(1, 7)
            new = texture(handle, 0) if handle < 4 else buffer(handle, 64 << sent.randrange(8))
            message += [messages.ResourceUnref(handle), new]
        parts = [*_change(sent), sent.choice(frames), sent.choice(frames)]
        if sent.randrange(3):
            parts = parts[-2:]
        message.append(messages.SubmitCmd(b"".join(parts)))
        for way in ways:
            way.send(*message)
        assert ways[0].events == ways[1].events, number
        for way in ways:
            way.events.clear()
    walked, other = (way.client.contexts[0] for way in ways)
    assert walked.state.lines() == other.state.lines()
    assert "walk" not in vars(other)


def _repeating() -> tuple[Watched, bytes]:
    """A client, and a frame of a clear and two draws with settings that it knows."""
    watched = Watched(in_objects=False)
    watched.send(buffer(4, 64), buffer(5, 64))
    watched.send(messages.SubmitCmd(
        CreateObject(1, objects.BlendState()).encode_command()
        + CreateObject(2, objects.BlendState(dither=True)).encode_command()
    ))  # fmt: skip
    draw = work_commands.DrawVbo(count=3, instance_count=1)
    clear = work_commands.Clear(4, (0.5, 0.0, 0.0, 1.0), 1.0, 0)
    begin = state_commands.SetSubCtx(0).encode_command() + clear.encode_command()
    frame = begin + b"".join(
        one.encode_command()
        for handle in (1, 2)
        for one in (
            BindObject(ObjectKind.BLEND, handle),
            state_commands.SetVertexBuffers((state_commands.VertexBuffer(4, 0, 3 + handle),)),
            state_commands.SetConstantBuffer(Stage.VERTEX, 0, bytes([handle] * 16)),
            draw,
        )
    )
    return watched, frame


def test_repeated_frames_make_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second frame on nothing is left to Python."""
    watched, frame = _repeating()
    context = watched.client.contexts[0]
    watched.send(messages.SubmitCmd(frame), messages.SubmitCmd(frame))
    first = list(watched.events)
    assert len(first) == 6
    monkeypatch.setattr(context, "execute", lambda command: pytest.fail(str(command)))
    watched.events.clear()
    watched.send(messages.SubmitCmd(frame))
    assert watched.events == first[3:]
    assert first[3][0] == "clear"
    assert context.state.blend == objects.BlendState(dither=True)
    assert context.constants == ((bytes([2] * 16),), ())


def test_streamed_vertices_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets of vertex buffers are no part of what is known, nor are tuples that hold textures."""
    watched, _ = _repeating()
    context = watched.client.contexts[0]
    view = CreateObject(3, objects.SamplerView(1, BGRA)).encode_command()
    watched.send(texture(1, 0), messages.SubmitCmd(view))

    def frame(offset: int) -> messages.SubmitCmd:
        return messages.SubmitCmd(b"".join(
            one.encode_command()
            for part in (0, 64)
            for one in (
                state_commands.SetSamplerViews(Stage.FRAGMENT, 0, (3 * (not part),)),
                state_commands.SetVertexBuffers(tuple(
                    state_commands.VertexBuffer(4, offset + part + more, 4) for more in (0, 32)
                )),
                work_commands.DrawVbo(count=3, instance_count=1),
            )
        ))  # fmt: skip

    watched.send(frame(0), frame(256))
    monkeypatch.setattr(context, "execute", lambda command: pytest.fail(str(command)))
    watched.events.clear()
    watched.send(frame(1024), frame(4096))
    for number, offset in enumerate((1024, 1088, 4096, 4160)):
        text = watched.events[number][0]
        assert f"offset={offset} " in text
        assert f"offset={offset + 32} " in text
    assert [one.state.offset for one in context.vertex_buffers if one is not None] == [4160, 4192]


def test_handles_that_go_are_not_followed() -> None:
    watched, frame = _repeating()
    watched.send(*[messages.SubmitCmd(frame)] * 3)
    watched.events.clear()
    watched.send(messages.ResourceUnref(5), buffer(5, 4096), messages.SubmitCmd(frame))
    assert "4096x1" in watched.events[2][0]
    destroyed = DestroyObject(ObjectKind.BLEND, 2).encode_command()
    watched.events.clear()
    watched.send(messages.SubmitCmd(destroyed), messages.SubmitCmd(frame))
    assert [one[0] for one in watched.events if len(one) == 2] == ["GL-004"]


def test_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full tables are emptied; names that change each time are not learned for a while."""
    monkeypatch.setattr(steps, "STEPS", 64)
    monkeypatch.setattr(steps, "STATES", 16)
    monkeypatch.setattr(steps, "ROWS", 2)
    watched, frame = _repeating()
    for number in range(200):
        color = state_commands.SetBlendColor((float(number), 0.0, 0.0, 0.0)).encode_command()
        watched.send(messages.SubmitCmd(color + frame * 3))
    assert len(watched.events) == 1800
    assert len({one[0] for one in watched.events[-6:]}) == 3
    assert "blend_color: [199, 0, 0, 0]" in watched.events[-1][0]


def test_kinds_are_declared() -> None:
    """What does something else than draw and clear is left to Python; a draw's limits are the
    declaration's.
    """
    kinds = walk.kinds()
    assert kinds[state_commands.SetSubCtx.number] == walk.CONTEXT
    assert kinds[work_commands.Clear.number] == walk.CLEAR
    for left in (work_commands.Blit, work_commands.Transfer3d, state_commands.DestroySubCtx):
        assert kinds[left.number] == walk.OTHER
    assert {at for at, _ in walk.DRAW_LIMITS} == {2, 3, 7, 11}
