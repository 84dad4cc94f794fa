# ruff: noqa: F821, RUF059 - clients are other programs
"""The virtual device from Python: results, hot-plug, the pytest fixture."""

import ctypes.util
import inspect
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest
from tests.support.drm_client import CLIENT
from tests.support.host_tools import need_library
from tests.support.supervised import need_supervisor

import vc4lab
from vc4lab import DrmDevice

pytest_plugins = ["pytester"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _possible() -> None:
    need_supervisor()


def program(client: Callable[[], None]) -> list[str]:
    """A function as a program to run."""
    source = textwrap.dedent(inspect.getsource(client))
    return [sys.executable, "-c", f"{CLIENT}\n{source}\n{client.__name__}()\n"]


def shades() -> None:
    fd = open_card()
    crtc, fb, view, pitch = show(fd)
    for number in range(1, 40):
        view[:] = bytes([number, 0, 0, 0]) * (len(view) // 4)
        flip(fd, crtc, fb)
        events(fd)
    os._exit(9)


def test_one_line(drm: Callable[..., DrmDevice]) -> None:
    result = drm().run(program(shades), frames=3)
    assert result.frames == 3
    assert result.screen.image is not None
    assert result.screen.image.getpixel((0, 0)) == (0, 0, 2)
    assert (result._repr_png_() or b"")[:8] == PNG


def test_a_result_is_the_exit_code_and_keeps_its_own_picture() -> None:
    with vc4lab.DrmDevice(paced=False) as device:
        first = device.run(program(shades))
        second = device.run(["true"])
    assert (first, first.exit_code, second) == (9, 9, 0)
    assert first.screen.frames == 40
    assert second.frames == 0
    assert first.screen.image is not None
    assert first.screen.image.getpixel((639, 479)) == (0, 0, 39)
    with vc4lab.DrmDevice() as device:
        dark = device.run(["true"])
    assert dark.screen.image is None
    assert dark._repr_png_() is None


def test_a_screen_is_unplugged_and_another_one_plugged_in() -> None:
    def client() -> None:
        fd = open_card()
        crtc, connector, encoder = resources(fd)

        def state():
            found = ioctl(fd, 0xA7, "QQQQIIIIIIIIIIII", *[0] * 8, connector, *[0] * 7)
            with open("/sys/class/drm/card0-HDMI-A-1/status") as file:
                return found[11], found[4], found[12] > 0, file.read().strip()

        for wanted in ((1, 5, True, "connected"), (2, 0, False, "disconnected"), (1, 2, True, "connected")):
            for _ in range(500):
                if state() == wanted:
                    break
                time.sleep(0.01)
            assert state() == wanted
            print("seen", flush=True)
            sys.stdin.readline()
        assert [(m[1], m[6]) for m in modes(fd, connector)] == [(320, 240), (1366, 768)]

    with vc4lab.DrmDevice(paced=False, threads=1) as device:
        steps = [device.disconnect, lambda: device.connect("320x240,1366x768@50"), lambda: None]
        ready, go = os.pipe()
        seen, write = os.pipe()

        def drive() -> None:
            with open(seen, encoding="utf-8") as lines, open(go, "w", encoding="utf-8") as answer:
                for step, _line in zip(steps, lines, strict=False):
                    step()
                    answer.write("\n")
                    answer.flush()

        driver = threading.Thread(target=drive)
        driver.start()
        code = device.run(program(client), stdin=ready, stdout=write)
        os.close(write)
        os.close(ready)
        driver.join()
        assert code == 0
        with pytest.raises(ValueError, match="not a mode"):
            device.connect("large")


def test_the_fixture_in_a_test_suite(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import sys

        def test_it(drm):
            device = drm(modes="800x600", gpu_memory=8 << 20)
            result = device.run([sys.executable, "-c", {program(shades)[2]!r}], frames=2)
            assert result == 1 or result.screen.image is None

        def test_options(drm):
            device = drm(modes="800x600,640x480")
            result = device.run([sys.executable, "-c", {program(shades)[2]!r}], frames=2)
            assert result.screen.image.size == (640, 480)
            assert not device.screen.paced
            device.reporter.report("DRM-001", "something was said")
            assert result == 0, "this test fails"
        """
    )
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["*vc4lab: diagnostics*", "*something was said*"])


def test_libudevs_monitor_hears_of_the_plug() -> None:
    """And of nothing else: the sockets belong to a network of their own."""
    need_library("udev")
    namespace = subprocess.run(["unshare", "-Urn", "true"], capture_output=True, check=False)
    if namespace.returncode and os.geteuid():
        pytest.skip("programs may not have a network of their own here")

    def client() -> None:
        udev = ctypes.CDLL("libudev.so.1")
        for name in ("udev_new", "udev_monitor_new_from_netlink", "udev_monitor_receive_device"):
            getattr(udev, name).restype = ctypes.c_void_p
        value = udev.udev_device_get_property_value
        value.restype = ctypes.c_char_p
        value.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        monitor = udev.udev_monitor_new_from_netlink(ctypes.c_void_p(udev.udev_new()), b"udev")
        monitor = ctypes.c_void_p(monitor)
        match = udev.udev_monitor_filter_add_match_subsystem_devtype
        assert match(monitor, b"drm", b"drm_minor") == 0
        assert udev.udev_monitor_enable_receiving(monitor) == 0
        descriptor = udev.udev_monitor_get_fd(monitor)
        print("listening", flush=True)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(20000)
        device = udev.udev_monitor_receive_device(monitor)
        assert device
        names = (b"ACTION", b"DEVNAME", b"DEVTYPE", b"HOTPLUG")
        assert [value(device, n) for n in names] == [
            b"change", b"/dev/dri/card0", b"drm_minor", b"1",
        ]  # fmt: skip
        crtc, connector, encoder = resources(open_card())
        assert value(device, b"CONNECTOR") == str(connector).encode()

    with vc4lab.DrmDevice(paced=False, threads=1) as device:
        seen, write = os.pipe()

        def pull() -> None:
            with open(seen, encoding="utf-8") as lines:
                if next(lines, "") == "listening\n":
                    device.disconnect()

        driver = threading.Thread(target=pull)
        driver.start()
        code = device.run(program(client), stdout=write)
        os.close(write)
        driver.join()
        assert code == 0
