# ruff: noqa: F821, RUF059 - clients are other programs
"""Lima under X on the ZynqMP: the GPU draws a dumb buffer, the processor copies it to the screen.

The V3D plays the Mali: it clears a dumb buffer of the display's driver that was imported. The
client reads it and writes the scan-out, both with the X driver's policy. From the measured score
with the cache on (85) follows the one with the cache off; measured: 21.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import mean, median

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.cpu_memory.accounts import Frame, Use
from vc4lab.drm.cpu_memory.profiles import FOLDER, Attribute, Cost, load_profile, rate_with
from vc4lab.drm.cpu_memory.report import report_lines
from vc4lab.drm.device.device import DrmDevice
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

Make = Callable[..., DrmDevice]
PICTURE = 800 * 600 * 4
CACHED_SCORE, UNCACHED_SCORE, PROCESSOR_SCORE = 85, 21, 21
FRAMES = 6

LD1_RATES = (
    46.4, 54.0, 74.4, 80.5, 41.1, 63.1, 46.9, 46.7, 74.2, 57.5, 70.5, 57.1,
    56.0, 72.0, 57.0, 70.4, 73.0, 72.9, 64.6, 57.6, 39.7, 73.4, 52.2, 48.9,
)  # fmt: skip
"""MB a second that LD1 of four registers reads from an uncached frame buffer: the line "NEON LD1/ST1 copy
(from framebuffer)" of tinymembench in the 24 records of ThomasKaiser/sbc-bench before October 2022 whose
Cortex-A53 has an uncached one: 1BsF 1Dt1 1MFD 1iGW 1iJ7 1iRJ 1rYm 2kTH 3DtN 3JCm 3LoH 3MAK 3MX1 3Ntu 3PlT
3R1a 3R2Z 3VfL 3Wvv 3wZn 40cj 44Lq 46hs 4bSf."""
SCENES = (
    142, 152, 146, 131, 152, 126, 76, 72, 48, 64, 115, 93, 43, 20, 165, 30,
    97, 59, 60, 82, 75, 47, 60, 11, 149, 72, 151, 90, 59, 96, 89, 43,
)  # fmt: skip
"""Frames a second of glmark2's scenes with cached buffers, score 87, by the article's author:
ikwzm/ZynqMP-FPGA-Ubuntu22.04-Desktop, doc/faq/glmark2.md (the score is the mean of the scenes that ran)."""


def lima() -> None:
    """The GPU draws, the client reads and copies."""
    show, gpu = open_card(), open_card("renderD128")
    set_param(show, 2, 8)
    drawn, pitch, size = dumb_of(show, 800, 608, 32, 0)
    there = imported(gpu, export(show, drawn))
    crtc, connector, encoder = resources(show)
    mode = next(m for m in modes(show, connector) if (m[1], m[6]) == (800, 600))
    front, front_pitch, front_size = dumb_of(show, 800, 600, 32, 5)
    fb = add_fb(show, 800, 600, front_pitch, front)
    source, screen = map_dumb(show, drawn, size), map_dumb(show, front, front_size)
    assert (pitch, front_pitch) == (3200, 3328)

    def draw(colour):
        none = struct.pack("<IIHH", 0xFFFFFFFF, 0, 0, 0)
        held, place = buffer(struct.pack("<I", there))
        data = bytearray(
            struct.pack("<QQQQ", 0, 0, 0, place)
            + struct.pack("<IIIII", 0, 0, 0, 0, 1)
            + struct.pack("<HHBBBB", 800, 600, 0, 0, 12, 9)
            + none
            + struct.pack("<IIHH", 0, 0, 4, 0)  # RGBA8888, linear
            + none * 4
            + struct.pack("<IIIB3x", colour, colour, 0, 0)
            + struct.pack("<IQIIII", 1, 0, 0, 0, 0, 0)
        )
        fcntl.ioctl(gpu, number(0x40, 176), data)
        ioctl(gpu, 0x41, "QQ", struct.unpack_from("<Q", data, 152)[0], 10**11)

    for frame in range(int(sys.argv[1])):
        draw(0xFF000000 + 0x102030 * (frame + 1))
        for row in range(600):
            screen[3328 * row : 3328 * row + 3200] = source[3200 * row : 3200 * row + 3200]
        if frame:
            flip(show, crtc, fb)
            os.read(show, 1024)
        else:
            set_crtc(show, crtc, connector, fb, mode)


def processor() -> None:
    """The client draws into the scan-out itself."""
    show = open_card()
    crtc, connector, encoder = resources(show)
    mode = next(m for m in modes(show, connector) if (m[1], m[6]) == (800, 600))
    front, pitch, size = dumb_of(show, 800, 600, 32, 5)
    fb = add_fb(show, 800, 600, pitch, front)
    screen = map_dumb(show, front, size)
    for frame in range(int(sys.argv[1])):
        screen[:size] = bytes([frame + 1]) * size
        if frame:
            flip(show, crtc, fb)
            os.read(show, 1024)
        else:
            set_crtc(show, crtc, connector, fb, mode)


def run(make: Make, client: Callable[[], None], default: int, **options: object) -> DrmDevice:
    """Six frames of a client with the cache off or on."""
    options = {"cpu_memory": "ultra96", **options}
    device = make(device="xlnx", params={"dumb_cache_default_mode": default}, **options)
    run_client(device, client, str(FRAMES))
    assert device.cpu_memory is not None
    if device.cpu_memory.failure:
        pytest.skip(device.cpu_memory.failure)
    assert device.cpu_memory.frame_count == FRAMES
    return device


def last(device: DrmDevice) -> Frame:
    """The last frame: none of its mappings is new."""
    assert device.cpu_memory is not None
    return device.cpu_memory.frames[-1]


def use_of(frame: Frame, kind: str) -> tuple[Attribute, Use]:
    return next((key[2], use) for key, use in frame.uses.items() if key[1].startswith(kind))


@pytest.mark.parametrize("default", [0, 1])
def test_who_reads_what(make_device: Make, default: int) -> None:
    device = run(make_device, lima, default)
    picture = device.screenshot()
    assert picture is not None
    colour = 0x102030 * FRAMES
    assert picture.getpixel((799, 599))[:3] == (colour >> 16, colour >> 8 & 0xFF, colour & 0xFF)
    attribute, use = use_of(last(device), "dumb")
    assert attribute is (Attribute.CACHED if default else Attribute.WRITE_COMBINED)
    assert 0.95 * PICTURE <= use.read <= PICTURE + 4096
    assert use.written == 0
    attribute, use = use_of(last(device), "scan-out")
    assert attribute is Attribute.WRITE_COMBINED
    assert use.read == 0
    assert 0.95 * PICTURE <= use.written <= 3328 * 600 + 4096
    codes = [item.code for item in device.reporter.items]
    assert ("DRM-040" in codes) is not bool(default)
    assert ("DRM-042" in codes) is bool(default), "cached, written by the GPU, nothing maintained"
    assert device.cpu_memory is not None
    text = "\n".join(report_lines(device.cpu_memory))
    for part in ("Ultra96-V2", "frames a second", "lower bound"):
        assert part in text


def test_the_predicted_score(make_device: Make) -> None:
    """The interval was written down before: 36 to 59, 41 by the profile. It misses the 21."""
    with_cache, without = (last(run(make_device, lima, default)).cost for default in (1, 0))
    rate, least, most = rate_with(CACHED_SCORE, with_cache, without)
    assert rate == pytest.approx(41.4, rel=0.03)
    assert least == pytest.approx(36.2, rel=0.03)
    assert most == pytest.approx(58.7, rel=0.03)
    assert not least <= UNCACHED_SCORE <= most
    assert scores_of(with_cache, without) == pytest.approx([39.5, 34.4, 57.0], rel=0.03)


def scores_of(with_cache: Cost, without: Cost) -> list[float]:
    """The score as the mean of the scenes, as `rate_with` has each: by the rates, the least, the most."""
    return [mean(each) for each in zip(*(rate_with(one, with_cache, without) for one in SCENES), strict=True)]


def rates_of_ld1(folder: Path) -> Path:
    """A profile in which uncached memory is read as pixman's copy reads it: LD1 of 64-bit registers."""
    text = (FOLDER / "ultra96.toml").read_text()
    for key, value in (("rate", median(LD1_RATES)), ("low", min(LD1_RATES)), ("high", max(LD1_RATES))):
        before = {"rate": "130e6", "low": "105e6", "high": "250e6"}[key]
        assert text.count(f"{key} = {before}") == 1
        text = text.replace(f"{key} = {before}", f"{key} = {value}e6")
    path = folder / "pixman.toml"
    path.write_text(text)
    return path


def test_the_score_with_the_loads_that_the_x_server_executes(make_device: Make, tmp_path: Path) -> None:
    """One pass of pixman's LD1 explains the 21, also as a mean of scenes. It was found afterwards."""
    profile = rates_of_ld1(tmp_path)
    with_cache, without = (
        last(run(make_device, lima, default, cpu_memory=profile)).cost for default in (1, 0)
    )
    rate, least, most = rate_with(CACHED_SCORE, with_cache, without)
    assert rate == pytest.approx(23.4, rel=0.03)
    assert least == pytest.approx(17.3, rel=0.03)
    assert most == pytest.approx(30.1, rel=0.03)
    assert least <= UNCACHED_SCORE <= most
    scores = [
        mean(each) for each in zip(*(rate_with(one, with_cache, without) for one in SCENES), strict=True)
    ]
    assert scores == pytest.approx([22.3, 16.6, 28.6], rel=0.03)
    assert load_profile("ultra96").read[Attribute.WRITE_COMBINED].rate == 130e6, (
        "the prediction stays as it was"
    )


def test_rendering_by_the_processor_does_not_move(make_device: Make) -> None:
    with_cache, without = (last(run(make_device, processor, default)).cost for default in (1, 0))
    rate, _, _ = rate_with(PROCESSOR_SCORE, with_cache, without)
    assert rate == pytest.approx(PROCESSOR_SCORE, rel=0.01)


def test_a_coherent_machine_has_nothing_to_report(make_device: Make) -> None:
    unknowns = DEFAULT_UNKNOWNS.with_(dma_coherent="yes")
    device = run(make_device, lima, 1, unknowns=unknowns)
    assert not [item for item in device.reporter.items if item.code in ("DRM-041", "DRM-042")]


def test_a_cached_scan_out_is_reported(make_device: Make) -> None:
    def client() -> None:
        fd = open_card()
        crtc, connector, encoder = resources(fd)
        mode = next(m for m in modes(fd, connector) if (m[1], m[6]) == (640, 480))
        handle, pitch, size = dumb_of(fd, 640, 480, 32, 7)
        map_dumb(fd, handle, size)[:] = b"\1" * size
        view = map_dumb(fd, handle, size)
        view[:] = b"\2" * size
        set_crtc(fd, crtc, connector, add_fb(fd, 640, 480, pitch, handle), mode)

    for choice, codes in (("no", ["DRM-041"]), ("yes", [])):
        device = make_device(
            device="xlnx", cpu_memory="pi3", unknowns=DEFAULT_UNKNOWNS.with_(dma_coherent=choice)
        )
        run_client(device, client)
        assert [item.code for item in device.reporter.items] == codes


def test_costs_add_up() -> None:
    assert (Cost(1, 0.5, 2) + Cost(1, 1, 1)).per(2) == Cost(1, 0.75, 1.5)
    assert rate_with(50, Cost(0.01, 0.01, 0.01), Cost(0.04, 0.02, 0.06)) == pytest.approx(
        (20, 1 / 0.07, 1 / 0.03)
    )
