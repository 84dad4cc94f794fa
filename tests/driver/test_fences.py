"""Fences: the work before one is done without being waited for, and what comes meanwhile is right.

Mesa makes a fence, a buffer of 8 bytes, when a program ends a frame, and then waits for it.
"""

import gc
import mmap
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.driver.drawing import RGBA, Drawing
from tests.mesa.conftest import RawClient, RunningServer
from tests.support.descriptors import open_descriptors

from vc4lab.diagnostics import StrictStop
from vc4lab.mesa.protocol import messages
from vc4lab.mesa.protocol.codes import Bind, Target
from vc4lab.mesa.protocol.formats import Format
from vc4lab.mesa.store.resources import MOST_SPARE


def fence(drawing: Drawing) -> tuple[int, mmap.mmap]:
    """A fence, as Mesa makes one; its handle and its memory."""
    handle = drawing.handle()
    drawing.client.send(
        messages.ResourceCreate2(handle, Target.BUFFER, Format.R8_UNORM, Bind.CUSTOM, 8, 1, 1, 0, 0, 0, 8)
    )
    return handle, drawing.client.memory(8)


def wait_for(client: RawClient, handle: int, flags: int = 1) -> None:
    client.send(messages.ResourceBusyWait(handle, flags))
    assert client.words(3) == (1, 7, 0)


def until(is_so: Callable[[], Any]) -> None:
    """Until something is so, which no message of the client brings about."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


def cleared(drawing: Drawing, colour: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)) -> int:
    """A texture with a clear that waits."""
    handle = drawing.texture(130, 70, RGBA)
    drawing.target(handle)
    drawing.clear(4, colour)
    return handle


def test_work_begins_with_the_fence(drawing: Drawing, gpu: RunningServer) -> None:
    """And not before: a frame may come in several messages."""
    handle = cleared(drawing)
    drawing.clear(4, (1, 1, 1, 1))
    buffer = drawing.buffer(bytes(8))  # an answer: what came before it was handled
    assert buffer
    assert gpu.screen.runner.jobs == 0
    number, _ = fence(drawing)
    until(lambda: gpu.screen.runner.jobs == 1)
    wait_for(drawing.client, number)
    assert (drawing.get(handle) == 255).all()
    assert gpu.screen.runner.jobs == 1
    assert gpu.codes() == []


def test_a_poll_and_a_wait_come_after_the_work(drawing: Drawing, gpu: RunningServer) -> None:
    for flags in (0, 1):
        cleared(drawing)
        number, _ = fence(drawing)
        wait_for(drawing.client, number, flags)
        assert gpu.screen.runner.jobs == 1 + flags


def test_what_comes_after_a_fence(drawing: Drawing, gpu: RunningServer) -> None:
    """Reading, and the end of what is drawn to, without a wait for the fence."""
    handle = cleared(drawing)
    fence(drawing)
    assert (drawing.get(handle) == [51, 102, 153, 204]).all()
    drawing.clear(4, (1, 0, 0, 1))
    fence(drawing)
    drawing.client.send(messages.ResourceUnref(handle))
    drawing.client.wait()
    assert gpu.codes() == []


def test_a_client_that_vanishes_after_a_fence(gpu: RunningServer) -> None:
    """The server serves the others."""
    for _ in range(3):
        client = gpu.client()
        client.send(messages.ProtocolVersion(2))
        assert client.words(3) == (1, 11, 2)
        drawing = Drawing(client)
        cleared(drawing)
        fence(drawing)
        client.socket.close()
    client = gpu.client()
    client.send(messages.ProtocolVersion(2))
    assert client.words(3) == (1, 11, 2)
    handle = cleared(Drawing(client))
    assert handle
    client.wait()
    until(lambda: len(gpu.server.clients) == 1)
    assert gpu.codes() == []


def test_strict_stops_the_server(drawing: Drawing, gpu: RunningServer) -> None:
    gpu.reporter.strict = True
    handle = drawing.texture(64, 64, Format.L8_UNORM)
    drawing.target(handle)
    drawing.clear(4, (1, 1, 1, 1))
    until(lambda: gpu.problems)
    (problem,) = gpu.problems
    assert isinstance(problem, StrictStop)
    assert problem.diagnostic.code == "GL-015"
    gpu.problems.clear()


def test_memory_of_fences_is_used_again(drawing: Drawing, gpu: RunningServer) -> None:
    """It is zero again, it is the client's own, and descriptors do not add up."""
    client = drawing.client
    first, memory = fence(drawing)
    memory[:] = b"modified"
    client.send(messages.ResourceUnref(first))
    again, other = fence(drawing)
    assert other[:] == bytes(8)
    other[:] = b"sameroom"
    assert memory[:] == b"sameroom"
    before = open_descriptors()
    for _ in range(100):
        client.send(messages.ResourceUnref(again))
        again, other = fence(drawing)
        other.close()
    assert open_descriptors() <= before
    second = gpu.client()
    second.send(messages.ProtocolVersion(2))
    assert second.words(3) == (1, 11, 2)
    _, others = fence(Drawing(second))
    assert others[:] == bytes(8)
    others[:] = b"foreign!"
    client.wait()
    assert memory[:] != b"foreign!"
    before = open_descriptors()
    many = [fence(drawing) for _ in range(MOST_SPARE + 20)]
    # Of each the server's, and the test's mapping.
    assert open_descriptors() <= before + 2 * len(many)
    for number, _ in many:
        client.send(messages.ResourceUnref(number))
    client.wait()
    assert len(gpu.server.clients[0].resources._spare._spare) == MOST_SPARE
    assert gpu.codes() == []


def test_descriptors_of_clients_that_went(gpu: RunningServer) -> None:
    """They are closed at once, not when Python looks for objects in circles."""
    before = open_descriptors()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            client = gpu.client()
            client.send(messages.ProtocolVersion(2))
            assert client.words(3) == (1, 11, 2)
            drawing = Drawing(client)
            cleared(drawing)
            fences = [fence(drawing) for _ in range(20)]
            drawing.buffer(bytes(64))
            for number, _ in fences[:10]:
                client.send(messages.ResourceUnref(number))
            client.wait()
            for _, memory in fences:
                memory.close()
            for memory in drawing.memory.values():
                memory.close()
            client.socket.close()
            until(lambda: not gpu.server.clients)
        assert open_descriptors() <= before
    finally:
        gc.enable()


def test_a_fence_is_a_buffer_for_who_looks_at_it(drawing: Drawing, gpu: RunningServer) -> None:
    """Only then it takes GPU memory."""
    client = drawing.client
    used = gpu.screen.memory.heap.used
    before, _ = fence(drawing)
    after, memory = fence(drawing)
    wait_for(client, after)
    assert gpu.screen.memory.heap.used == used
    box = 0, 0, 0, 8, 1, 1, 8, 0
    memory[:] = b"contents"
    client.send(messages.TransferPut2(after, 0, *box))
    wait_for(client, after)
    memory[:] = bytes(8)
    client.send(messages.TransferGet2(after, 0, *box))
    wait_for(client, after)
    assert memory[:] == b"contents"
    assert gpu.screen.memory.heap.used > used
    for number in (before, after):
        client.send(messages.ResourceUnref(number))
    client.wait()
    assert gpu.screen.memory.heap.used == used
    assert gpu.server.clients[0].resources.bytes == 0
    assert gpu.codes() == []
    client.send(messages.ResourceUnref(after))
    client.wait()
    assert gpu.codes() == ["GL-004"]


def test_a_fence_with_a_handle_that_is_taken(gpu: RunningServer) -> None:
    """By a fence, by a fence that was looked at, by a buffer; the handle 0."""
    for count, case in enumerate(("fence", "seen", "buffer", "zero"), 1):
        client = gpu.client()
        client.send(messages.ProtocolVersion(2))
        assert client.words(3) == (1, 11, 2)
        drawing = Drawing(client)
        number = 0
        if case == "buffer":
            number = drawing.buffer(bytes(8))
        elif case != "zero":
            number, _ = fence(drawing)
        if case == "seen":
            client.send(messages.TransferGet2(number, 0, 0, 0, 0, 8, 1, 1, 8, 0))
        again = messages.ResourceCreate2(
            number, Target.BUFFER, Format.R8_UNORM, Bind.CUSTOM, 8, 1, 1, 0, 0, 0, 8
        )
        client.send(again)
        assert client.socket.recv(1) == b""
        assert gpu.codes() == ["GL-004"] * count


def test_a_wait_for_a_buffer_that_is_only_read(drawing: Drawing, gpu: RunningServer) -> None:
    """It is answered before its work is done; a poll begins no work at all."""
    client, screen = drawing.client, gpu.screen
    vertices = drawing.buffer(bytes(64))
    handle = cleared(drawing)
    wait_for(client, vertices, 0)
    wait_for(client, vertices, 0)
    assert screen.runner.jobs == 0
    began, answered = threading.Event(), threading.Event()
    run = screen.runner.run

    def held(lists: Any) -> bool:
        began.set()
        assert answered.wait(60)
        return bool(run(lists))

    screen.runner.run = held  # type: ignore[method-assign]
    wait_for(client, vertices)
    answered.set()
    assert began.wait(60)
    assert (drawing.get(handle) == [51, 102, 153, 204]).all()
    assert screen.runner.jobs == 1
    assert gpu.codes() == []
