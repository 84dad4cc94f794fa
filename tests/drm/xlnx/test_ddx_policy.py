# ruff: noqa: F821, RUF059 - clients are other programs
"""What the X driver for this display asks for: a client of ours with its policy."""

from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

Make = Callable[..., DrmDevice]

POLICY = '''
def learn(fd):
    """scan-out alignment, cache available"""
    alignment, available = 256, 0
    try:
        if get_param(fd, 0) != 0x53620C75:
            return alignment, available
    except OSError:
        return alignment, available
    alignment = get_param(fd, 1)
    set_param(fd, 2, 8)
    available = get_param(fd, 3)
    set_param(fd, 4, 1)
    return alignment, available

def create(fd, known, width, height, bpp, scanout):
    """handle, pitch, size, width and height of what was asked for"""
    alignment, available = known
    if scanout:
        pitch = -(-width * (-(-bpp // 8)) // alignment) * alignment
        flags = 1
    else:
        width, height = -(-width // 16) * 16, -(-height // 16) * 16
        pitch, flags = width * -(-bpp // 8), 0
    if available:
        flags |= 4
    return *dumb_of(fd, width, height, bpp, flags, pitch=pitch), width, height
'''


def test_the_policy(make_device: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.drm_client.CLIENT", _client() + POLICY)
    device = make_device(device="xlnx")

    def client() -> None:
        fd = open_card()
        known = learn(fd)
        assert known == (256, 1)
        assert [get_param(fd, n) for n in (2, 4)] == [8, 1]
        front = create(fd, known, 800, 600, 32, True)
        assert front[1:3] == (3328, 3328 * 600)
        other = create(fd, known, 801, 601, 32, False)
        assert other[1:] == (816 * 4, 816 * 4 * 608, 816, 608)
        assert create(fd, known, 33, 33, 16, False)[1:3] == (96, 96 * 48)
        lima = dumb_of(fd, 800, 608, 32, 0)
        assert lima[1:] == (3200, 3200 * 608)
        crtc, connector, encoder = resources(fd)
        mode = next(m for m in modes(fd, connector) if (m[1], m[6]) == (640, 480))
        handle, pitch, size, *_ = create(fd, known, 640, 480, 32, True)
        map_dumb(fd, handle, size)[:] = b"\x00\x80\xff\x00" * (size // 4)
        set_crtc(fd, crtc, connector, add_fb(fd, 640, 480, pitch, handle), mode)

    made: list[tuple[str, bool]] = []
    release = device.buffers.drop

    def drop(target: object) -> None:
        made.append((target.kind, target.is_cached))  # type: ignore[attr-defined]
        release(target)  # type: ignore[arg-type]

    device.buffers.drop = drop  # type: ignore[method-assign, assignment]
    device.keep_pictures = True
    run_client(device, client)
    assert set(made) == {("scan-out", False), ("dumb", False), ("dumb", True)}
    assert made.count(("dumb", True)) == 1, "only what Lima makes is cached"
    picture = device.screenshot()
    assert picture is not None
    assert picture.getpixel((639, 479))[:3] == (0xFF, 0x80, 0)


def test_another_driver_leaves_the_defaults(device: DrmDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """On vc4 the number is SUBMIT_CL: an error, so nothing is set."""
    monkeypatch.setattr("tests.support.drm_client.CLIENT", _client() + POLICY)

    def client() -> None:
        fd = open_card()
        known = learn(fd)
        assert known == (256, 0)
        assert create(fd, known, 100, 100, 32, False)[3:] == (112, 112)

    run_client(device, client)


def _client() -> str:
    from tests.support import drm_client

    return drm_client.CLIENT
