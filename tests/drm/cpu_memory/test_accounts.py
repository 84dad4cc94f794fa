# ruff: noqa: F821, RUF059 - clients are other programs
"""Accounts of what clients read and wrote, from the kernel's page tables."""

from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.cpu_memory.accounts import CpuMemory, Use
from vc4lab.drm.device.device import DrmDevice

Make = Callable[..., DrmDevice]
PAGE = 4096


def accounts_of(device: DrmDevice) -> CpuMemory:
    """The device's accounts; skips where the kernel does not let us look."""
    accounts = device.cpu_memory
    assert accounts is not None
    if accounts.failure:
        pytest.skip(accounts.failure)
    return accounts


def pages(device: DrmDevice) -> list[dict[str, tuple[int, int]]]:
    """Of each frame: pages read and written, by the buffer's kind."""
    out = []
    for frame in accounts_of(device).frames:
        kinds: dict[str, Use] = {}
        for (_, buffer, _), use in frame.uses.items():
            kinds.setdefault(buffer.split()[0], Use()).add(use)
        out.append({kind: (u.read // PAGE, u.written // PAGE) for kind, u in kinds.items()})
    return out


def test_pages_read_and_written_are_told_apart(make_device: Make) -> None:
    """Five rounds of the same six frames. Of each frame the median counts, because the kernel
    marks a page by itself now and then (see `touched.py`). The last pages of the mapping are read,
    so that the processor cannot fetch the one after them ahead; between frames the client touches
    more other pages than a TLB has entries, but a few may stay there.
    """
    device = make_device(device="xlnx", cpu_memory="ultra96")

    def client() -> None:
        fd = open_card()
        crtc, fb, screen, pitch = show(fd)
        handle, pitch, size = dumb_of(fd, 1024, 256, 32, 0)
        offset = ioctl(fd, 0xB3, "IIQ", handle, 0, 0)[2]
        drawn = mmap.mmap(fd, size, offset=offset)
        seen = mmap.mmap(fd, size, offset=offset, prot=mmap.PROT_READ)
        drawn[:] = b"\1" * size
        sum(seen[::4096])
        others = mmap.mmap(-1, 8192 * 4096)

        def done():
            flip(fd, crtc, fb)
            os.read(fd, 1024)
            sum(others[::4096])

        done()
        for number in range(5):
            done()
            sum(seen[192 * 4096 :: 4096])  # 64 pages read
            done()
            drawn[: 32 * 4096] = bytes([2 + number]) * (32 * 4096)  # 32 written
            done()
            drawn[: 32 * 4096] = bytes([2 + number]) * (32 * 4096)  # with what is there
            done()
            drawn[0:4] = b"\7\7\7\7"
            sum(seen[246 * 4096 :: 4096])
            done()
            done()

    run_client(device, client)
    found = [frame.get("dumb", (0, 0)) for frame in pages(device)][1:]  # after SETCRTC
    assert found[0][1] == 256
    assert 16 <= found[0][0] <= 256  # fresh mappings: reads of them count as few as they may be
    assert len(found) == 1 + 5 * 6
    expected = [(0, 0), (64, 0), (0, 32), (0, 32), (10, 1), (0, 0)]
    for step, most in enumerate(expected):
        rounds = found[1 + step :: 6]
        for what, bound in enumerate(most):
            median = sorted(each[what] for each in rounds)[2]
            assert bound * 7 // 8 <= median <= bound, (step, what, rounds)


def test_what_was_touched_before_an_unmap_counts(make_device: Make) -> None:
    device = make_device(device="xlnx", cpu_memory="ultra96")

    def client() -> None:
        fd = open_card()
        crtc, fb, screen, pitch = show(fd)
        handle, pitch, size = dumb_of(fd, 1024, 64, 32, 0)
        for value in (b"\1", b"\2"):
            view = map_dumb(fd, handle, size)
            view[:] = value * size
            view.close()
            flip(fd, crtc, fb)
            os.read(fd, 1024)

    run_client(device, client)
    assert [frame.get("dumb") for frame in pages(device)] == [None, (0, 64), (0, 64)]


def test_children_count_too(make_device: Make) -> None:
    """One process draws, the other reads: mappings that fork passed on."""
    device = make_device(device="xlnx", cpu_memory="ultra96")

    def client() -> None:
        fd = open_card()
        crtc, fb, screen, pitch = show(fd)
        handle, pitch, size = dumb_of(fd, 1024, 64, 32, 0)
        view = map_dumb(fd, handle, size)
        view[:] = bytes(size)
        ask, answer = os.pipe(), os.pipe()
        if not os.fork():
            while os.read(ask[0], 1) == b"d":
                for page in range(0, size, 4096):
                    view[page] = (view[page] + 1) & 0xFF
                os.write(answer[1], b"k")
            os._exit(0)
        for _ in range(3):
            os.write(ask[1], b"d")
            os.read(answer[0], 1)
            flip(fd, crtc, fb)
            os.read(fd, 1024)
        os.write(ask[1], b"q")
        os.wait()

    run_client(device, client)
    accounts = accounts_of(device)
    writers = [
        {name for (name, buffer, _), use in frame.uses.items() if use.written and "dumb" in buffer}
        for frame in accounts.frames
    ]
    # The child's first writes count for certain: fork gave it no entries. Later ones may be missed
    # where the processor still held its entries in the TLB (vc4lab/drm/cpu_memory/touched.py).
    parent = next(iter(accounts.totals))[0]
    (child,) = set[str]().union(*writers) - {parent}
    assert "python" in child
    assert parent not in writers[-1]
