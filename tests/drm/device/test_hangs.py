# ruff: noqa: F821, PT018, RUF059 - clients are other programs
"""Jobs that never end: given up soon, named, looked at; what comes after them goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_jobs import prepare, run_live, shader_index

from vc4lab.diagnostics import Reporter
from vc4lab.drm.device import gpu
from vc4lab.drm.device.device import DrmDevice
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.model import Noted
from vc4lab.jobs.player import JobsPlayer
from vc4lab.qpu.text.assembler import assemble

ENDLESS = ":a\nbrr -, a\nnop\nnop\nnop\nnop\nthrend\nnop\nnop"


def make_endless(folder: Path, which: int) -> None:
    """Put a program that goes round for ever in the place of a prepared job's shader."""
    (folder / f"{shader_index(folder, which)}.bin").write_bytes(assemble(ENDLESS).bytes)
    with (folder / "uniforms.bin").open("ab") as file:
        file.write(bytes(64))  # every shader takes another number of them


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_shader_without_an_end(device: DrmDevice, tmp_path: Path, which: int) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir()
    expected = prepare("tri_amd64", good)
    shutil.copytree(good, bad)
    make_endless(bad, which)

    def client() -> None:
        good, bad = Live(sys.argv[1] + "/good"), Live(sys.argv[1] + "/bad", labels=True)
        began = time.monotonic()
        done = ioctl(bad.fd, 0xBF, "II", 0, 0)[0]
        hung = bad.submit(out_sync=done)
        after = good.submit()
        bad.finish(hung)
        held, place = buffer(struct.pack("<I", done))
        ioctl(bad.fd, 0xC3, "QqIIII", place, 0, 1, 0, 0, 0)
        good.finish(after)
        assert time.monotonic() - began < 8
        again = good.submit()
        good.finish(again, "again")
        fd = open_card()
        places, place = buffer(bytes(16 * 64))
        state = ioctl(fd, 0x46, "QI37I", place, 64, *[0] * 37)
        assert state[1] > len(bad.handles), state
        entries = list(struct.iter_unpack("<IIII", places.raw))[: state[1]]
        assert all(address % 4096 == 0 and size % 4096 == 0 for _, address, size, _ in entries)
        with open(sys.argv[1] + "/dump", "wb") as file:
            file.write(struct.pack("<IQI37I", 0, *state))
            file.write(places.raw[: 16 * state[1]])
            for number, _, size, _ in entries:
                offset = ioctl(fd, 0x44, "IIQ", number, 0, 0)[2]
                file.write(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ, offset=offset))
        assert state[2] and state[3] and state[3] != state[2]
        assert state[6] or state[4], "no register"
        assert refused(fd, 0x46, "Q38I", *[0] * 39) == errno.ENOENT

    run_live(device, client, str(tmp_path))
    assert device.gpu.jobs == 3
    assert (good / "drawn").read_bytes() == (good / "again").read_bytes() == expected
    (given_up,) = [item for item in device.reporter.items if item.code == "DRM-016"]
    text = given_up.message
    assert "] job 1: abandoned" in text
    assert "does not end" in text
    assert f"shader 'label {shader_index(bad, which)}'" in text
    assert text.startswith("python")
    player = JobsPlayer(open_jobs(tmp_path / "dump"), reporter=Reporter())
    ((frame, _),) = player.play()
    notes = [one.text for one in frame.events if isinstance(one, Noted)]
    assert any(one.startswith("thread 0 (binning) stood at") for one in notes), notes
    assert len(player.hangs) == 1
    assert "does not end" in player.hangs[0]


def test_many_programs_without_an_end(device: DrmDevice, tmp_path: Path) -> None:
    """One of them is enough: the chip goes no further either."""
    prepare("glmark2_ideas", tmp_path, 1)
    table = json.loads((tmp_path / "job.json").read_text())
    for index, entry in enumerate(table["bos"]):
        if entry["shader"]:
            text = "nop\n" * index + ENDLESS
            (tmp_path / f"{index}.bin").write_bytes(assemble(text).bytes)

    def client() -> None:
        live = Live(sys.argv[1])
        began = time.monotonic()
        live.finish(live.submit())
        assert time.monotonic() - began < 8
        fd = open_card()
        places, place = buffer(bytes(16 * 64))
        ioctl(fd, 0x46, "QI37I", place, 64, *[0] * 37)

    run_live(device, client, str(tmp_path))
    assert [item.code for item in device.reporter.items].count("DRM-016") == 1


LONG = """
    ldi r0, {rounds}
:a
    sub.setf r0, r0, 1
    brr.any_zc -, a
    nop
    nop
    nop
    thrend
    nop
    nop
"""


def test_a_tile_that_takes_too_long(device: DrmDevice, tmp_path: Path) -> None:
    """Each block ends, after nearly as many instructions as one may execute; thousands do."""
    expected = prepare("tri_amd64", tmp_path)
    bad = tmp_path / "bad"
    shutil.copytree(tmp_path, bad)
    make_endless(bad, 0)
    code = assemble(LONG.format(rounds=(1 << 22) // 5 - 10)).bytes
    (bad / f"{shader_index(bad, 0)}.bin").write_bytes(code)
    watchdog = device.gpu.watchdog
    assert watchdog is not None
    watchdog.patience = 0.05
    device.reporter.listeners.append(lambda _: setattr(watchdog, "patience", 10.0))

    def client() -> None:
        good, bad = Live(sys.argv[1]), Live(sys.argv[1] + "/bad")
        began = time.monotonic()
        bad.finish(bad.submit())
        print(time.monotonic() - began)
        good.finish(good.submit())
        fd = open_card()
        places, place = buffer(bytes(16 * 64))
        ioctl(fd, 0x46, "QI37I", place, 64, *[0] * 37)

    text = run_live(device, client, str(tmp_path))
    print(text)
    assert (tmp_path / "drawn").read_bytes() == expected
    (given_up,) = [item for item in device.reporter.items if item.code == "DRM-016"]
    assert "a tile took too long" in given_up.message
    assert float(text) < 20


def test_only_what_has_stood_still_for_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frames:
        progress: tuple[int, ...] | None = None
        abandoned = 0

        def abandon(self) -> None:
            self.abandoned += 1

    frames: Any = Frames()
    watched, now = gpu.Watchdog(frames), 1000.0
    monkeypatch.setattr(gpu.time, "monotonic", lambda: now)
    patience = watched.patience
    for progress, passed, expected in (
        (None, patience, 0), (None, patience, 0), ((1, 1), 1.0, 0), ((1, 1), patience - 0.5, 0),
        ((1, 2), 0.4, 0), ((1, 2), patience - 0.1, 0), ((1, 2), 0.2, 1), ((2, 0), patience, 1),
        ((2, 0), 0.1, 1),
    ):  # fmt: skip
        now += passed
        frames.progress = progress
        watched.look()
        assert frames.abandoned == expected, (progress, passed)
