# ruff: noqa: F821, RUF059, PT018, SIM115 - clients are other programs
"""GET_PARAM, SET_PARAM, the module's parameters and what the driver says of itself."""

from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

Make = Callable[..., DrmDevice]


def test_the_numbers_of_the_article(make_device: Make) -> None:
    device = make_device(device="xlnx")

    def client() -> None:
        fd = open_card()
        assert number(0x40, 16) == 0xC0106440
        assert number(0x41, 16) == 0xC0106441
        assert [get_param(fd, n) for n in range(5)] == [0x53620C75, 256, 0, 1, 0]
        for nr in (0x40, 0x41):
            assert refused(fd, nr, "IIQ", 5, 0, 0) == errno.EINVAL
            for param in range(5):
                assert refused(fd, nr, "IIQ", param, 1, 0) == errno.EINVAL, "pad"
        for param in (0, 1, 3):
            assert refused(fd, 0x41, "IIQ", param, 0, 1) == errno.EINVAL
        for param in (2, 4):
            set_param(fd, param, 0x1_0000_0008)
            assert get_param(fd, param) == 8, "the low 32 bits"
            set_param(fd, param, 0xFFFFFFFFFFFFFFFF)
            assert get_param(fd, param) == 0xFFFFFFFF, "no check of the range"
        other = open_card()
        assert get_param(other, 4) == 0xFFFFFFFF, "the driver's, not the file's"

    run_client(device, client)


def test_version_and_tables(make_device: Make) -> None:
    device = make_device(device="xlnx")

    def client() -> None:
        def name_of(fd):
            held, place = buffer(bytes(16))
            out = ioctl(fd, 0x00, "iii4xQQQQQQ", 0, 0, 0, 16, place, 0, 0, 0, 0)
            return held.raw[: out[3]].decode(), out[:3]

        card = open_card()
        assert name_of(card) == ("xlnx", (1, 0, 0))
        for node in ("card1", "renderD128"):
            assert name_of(open_card(node))[0] == "vc4"
        gpu = open_card("renderD128")
        assert ioctl(gpu, 0x47, "IIQ", 0, 0, 0)[2] == 0x02443356
        assert refused(card, 0x47, "IIQ", 0, 0, 0) == errno.EINVAL
        assert refused(gpu, 0x40, "IIQ", 0, 0, 0) == errno.EINVAL  # SUBMIT_CL there
        assert refused(card, 0xBF, "II", 0, 0) == errno.EOPNOTSUPP
        assert ioctl(card, 0x0C, "QQ", 0x13, 0)[1] == 0
        assert refused(open_card("card1"), 0xA0, "QQQQIIIIIIII", *[0] * 12) == errno.EOPNOTSUPP
        assert os.readlink("/sys/dev/char/226:0").endswith("xlnx-drm.0/drm/card0")
        assert sorted(os.listdir("/dev/dri")) == ["card0", "card1", "renderD128"]
        assert open("/sys/class/drm/card0-HDMI-A-1/status").read() == "connected\n"
        tiled = 0x0700000000000001
        handle, pitch, size = dumb_of(card, 64, 64, 32, 1)
        args = (0, 64, 64, 0x34325258, 2, handle, 0, 0, 0, pitch, 0, 0, 0, 0, 0, 0, 0)
        fmt = "IIIII4I4I4I4Q"
        assert refused(card, 0xB8, fmt, *args, tiled, 0, 0, 0) == errno.EINVAL
        assert refused(card, 0xB8, fmt, *args, 0, 0, 0, 0) == 0

    run_client(device, client)


def test_the_modules_parameters(make_device: Make) -> None:
    params = {"dumb_alignment_size": 100, "dumb_cache_default_mode": 1}
    device = make_device(device="xlnx", params=params)

    def client() -> None:
        folder = "/sys/module/xlnx_drm/parameters/"

        def read(name):
            return open(folder + name).read()

        fd = open_card()
        assert read("dumb_alignment_size") == "100\n"
        assert get_param(fd, 2) == 100 and get_param(fd, 4) == 1
        set_param(fd, 2, 8)
        assert read("dumb_alignment_size") == "8\n"
        assert stat.S_IMODE(os.stat(folder + "dumb_alignment_size").st_mode) == 0o644
        for text, value in (("0\n", 0), ("16", 16), ("0x20\n", 32), ("what\n", 32), ("-1", 32)):
            with open(folder + "dumb_alignment_size", "w") as file:
                file.write(text)
            assert get_param(fd, 2) == value, text
        assert dumb_of(fd, 9, 1, 32, 0)[1] == 64
        try:
            open("/sys/class/drm/card0/dev", "w")
        except PermissionError:
            print("read-only")

    assert run_client(device, client).strip() == "read-only"
    assert device.parameters["dumb_alignment_size"] == 32


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "lima"}, "no device is called 'lima'; the devices are vc4, xlnx"),
        ({"params": {"dumb_alignment_size": 8}}, "the device vc4 has no parameters"),
        ({"device": "xlnx", "params": {"colour": 1}}, "no parameter is called 'colour'"),
        ({"device": "xlnx", "params": {"dumb_alignment_size": -1}}, "-1 is not a whole number"),
        ({"device": "xlnx", "params": {"dumb_alignment_size": 1 << 32}}, "is not a whole number"),
        ({"device": "xlnx", "params": {"dumb_alignment_size": "8"}}, "'8' is not a whole number"),
    ],
)
def test_what_is_no_device_or_parameter(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DrmDevice(**options)  # type: ignore[arg-type]
