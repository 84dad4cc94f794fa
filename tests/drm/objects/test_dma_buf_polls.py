# ruff: noqa: F821 - clients are other programs
"""Programs that poll a dma-buf: readable after the jobs that draw into it, writable after all."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.drm_client import run_client
from tests.support.live_jobs import held_jobs, prepare, run_live

from vc4lab.drm.device.device import DrmDevice


def polls() -> None:
    """A compositor's way to wait: before, while and after a job draws."""

    def by_poll(number, bits):
        poller = select.poll()
        poller.register(number, bits)
        return lambda seconds: dict(poller.poll(seconds * 1000)).get(number, 0)

    def by_select(number, bits):
        def look(seconds):
            wanted = [[number] if bits & bit else [] for bit in (select.POLLIN, select.POLLOUT)]
            readable, writable, _ = select.select(*wanted, [], seconds)
            return bool(readable) * select.POLLIN | bool(writable) * select.POLLOUT

        return look

    def by_epoll(number, bits):
        poller = select.epoll()
        poller.register(number, bits)
        return lambda seconds: dict(poller.poll(seconds)).get(number, 0)

    IN, OUT = select.POLLIN, select.POLLOUT
    way = {"poll": by_poll, "select": by_select, "epoll": by_epoll}[sys.argv[2]]
    live = Live(sys.argv[1])
    drawn = export(live.fd, live.handles[live.colour])
    used = next(n for n, view in enumerate(live.views) if view is not None and n != live.colour)
    read = export(live.fd, live.handles[used])
    asked = [(number, bits) for number in (drawn, read) for bits in (IN, OUT, IN | OUT)]
    looks = {(number, bits): way(number, bits) for number, bits in asked}
    waits = way(drawn, IN), way(drawn, OUT), way(read, OUT)
    for wait in waits:
        until = time.monotonic() + 60  # one after the other may become ready
        while (seen := [look(0) for look in looks.values()]) != [IN, OUT, IN | OUT] * 2:
            assert time.monotonic() < until, seen
        seqno = live.submit()
        now = {key: look(0) for key, look in looks.items()}
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == errno.ETIME, "the job is too fast"
        assert [now[drawn, bits] for bits in (IN, OUT, IN | OUT)] == [0, 0, 0]
        assert [now[read, bits] for bits in (IN, OUT, IN | OUT)] == [IN, 0, IN], "read only"
        assert wait(0.01) == 0
        live.go()
        assert wait(60)
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == 0, "back before the end of the job"
    print("done")


@pytest.mark.parametrize("way", ["poll", "select", "epoll"])
def test_a_dma_buf_is_ready_when_the_gpu_is_through_with_it(
    way: str, device: DrmDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_jobs(monkeypatch, tmp_path)
    prepare("tri_amd64", tmp_path)
    assert run_live(device, polls, str(tmp_path), way) == "done\n"
    device.supervisor.let_go()
    assert not device.gpu.watchers, "a closed dma-buf is still watched"


@pytest.mark.parametrize("way", ["poll", "select", "epoll"])
def test_a_dma_buf_that_came_over_a_socket(
    way: str, make_device: Callable[..., DrmDevice], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a number outside of the window then. select and epoll need the deep mode for that."""
    held_jobs(monkeypatch, tmp_path)
    prepare("tri_amd64", tmp_path)

    def client() -> None:
        live = Live(sys.argv[1])
        ours, theirs = socket.socketpair()
        other = create_bo(live.fd, 4096)
        socket.send_fds(ours, [b"x"], [export(live.fd, live.handles[live.colour])])
        socket.send_fds(ours, [b"x"], [export(live.fd, other)])
        drawn, idle = (socket.recv_fds(theirs, 1, 1)[1][0] for _ in range(2))
        assert drawn < 900
        seqno = live.submit()
        if sys.argv[2] == "poll":
            poller = select.poll()
            poller.register(idle, select.POLLIN)
            assert poller.poll(0) == [(idle, select.POLLIN)]
            poller.unregister(idle)
            poller.register(drawn, select.POLLIN)
            assert poller.poll(0) == []
            live.go()
            assert poller.poll(60_000) == [(drawn, select.POLLIN)]
        elif sys.argv[2] == "select":
            assert select.select([drawn], [idle], [], 0) == ([], [idle], [])
            live.go()
            assert select.select([drawn], [], [], 60) == ([drawn], [], [])
        else:
            poller = select.epoll()
            poller.register(drawn, select.EPOLLIN)
            assert poller.poll(0) == []
            live.go()
            assert poller.poll(60) == [(drawn, select.EPOLLIN)]
        assert refused(live.fd, 0x41, "QQ", seqno, 0) == 0
        print("done")

    device = make_device(deep=way != "poll")
    assert run_live(device, client, str(tmp_path), way) == "done\n"


def test_the_descriptor_of_a_sync_object_is_always_ready(device: DrmDevice) -> None:
    """Linux has no poll for it, so neither poll nor select waits."""

    def client() -> None:
        fd = open_card("renderD128")
        file = ioctl(fd, 0xC1, "IIiI", ioctl(fd, 0xBF, "II", 0, 0)[0], 0, -1, 0)[2]
        poller = select.poll()
        poller.register(file, select.POLLIN | select.POLLOUT)
        assert poller.poll(0) == [(file, select.POLLIN | select.POLLOUT)]
        assert select.select([file], [file], [], 5) == ([file], [file], [])
        print("done")

    assert run_client(device, client) == "done\n"
