# ruff: noqa: F821 - clients are other programs
"""Engine, strict mode, choices for the unknown, and counters of live jobs."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_jobs import prepare, run_live
from tests.support.supervised import need_supervisor

from vc4lab.diagnostics import Reporter
from vc4lab.drm.device.device import DrmDevice
from vc4lab.v3d.counters import SOURCES
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS


@pytest.fixture(autouse=True)
def _possible() -> None:
    need_supervisor()


def client() -> None:
    live = Live(sys.argv[1])
    live.finish(live.submit())


def draw(folder: Path, **settings: Any) -> bytes:
    with DrmDevice(paced=False, threads=1, **settings) as device:
        run_live(device, client, str(folder))
    return (folder / "drawn").read_bytes()


@pytest.mark.parametrize("name", ["tri_amd64", "kmscube_smooth"])
def test_the_interpreter_draws_the_same(tmp_path: Path, name: str) -> None:
    expected = prepare(name, tmp_path)
    assert draw(tmp_path, engine="interpreter") == expected


def test_choices_for_the_unknown(tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)
    table = json.loads((tmp_path / "job.json").read_text())
    table["clear_color"] = [0x11111111, 0x22222222]
    (tmp_path / "job.json").write_text(json.dumps(table))
    usual = draw(tmp_path)
    other = draw(tmp_path, unknowns=DEFAULT_UNKNOWNS.with_(clear_colour_words="columns"))
    words = {struct.unpack_from("<I", data)[0] for data in (usual, other)}
    assert usual != other
    assert words <= {0x11111111, 0x22222222}


def test_strict_stops_at_the_first_error(tmp_path: Path) -> None:
    """A job that the kernel refuses, and one that hangs: the programs are ended."""
    prepare("tri_amd64", tmp_path)
    table = json.loads((tmp_path / "job.json").read_text())
    table["flags"] = 0x100
    (tmp_path / "job.json").write_text(json.dumps(table))
    reporter = Reporter(strict=True)
    with DrmDevice(paced=False, threads=1, reporter=reporter) as device:
        run_live(device, client, str(tmp_path), expect=None)
        assert device.strict_stop is not None
        assert device.strict_stop.diagnostic.code == "DRM-017"
        assert not (tmp_path / "drawn").exists()


def test_performance_monitors_count_what_counters_show(tmp_path: Path) -> None:
    prepare("tri_amd64", tmp_path)
    sources = [source.id for source in SOURCES if source.modelled][:16]
    shown: list[tuple[str, dict[int, int]]] = []

    def counting() -> None:
        sources = [int(number) for number in sys.argv[2].split(",")]
        live = Live(sys.argv[1])

        def values(number):
            held, place = buffer(bytes(8 * len(sources)))
            ioctl(live.fd, 0x4E, "I4xQ", number, place)
            return struct.unpack(f"<{len(sources)}Q", held.raw)

        events = sources + [0] * (16 - len(sources))
        first = ioctl(live.fd, 0x4C, "II16B", 0, len(sources), *events)[0]
        second = ioctl(live.fd, 0x4C, "II16B", 0, len(sources), *events)[0]
        live.finish(live.submit(perfmon=first))
        live.finish(live.submit())
        once = values(first)
        live.finish(live.submit(perfmon=first))
        live.finish(live.submit(perfmon=second))
        assert values(first) == tuple(2 * value for value in values(second))
        assert once == values(second)
        print(*once)
        assert refused(live.fd, 0x4E, "I4xQ", 77, 0) == errno.EINVAL
        try:
            live.submit(perfmon=77)
        except OSError as error:
            print(error.errno)

    with DrmDevice(paced=False, threads=1) as device:
        device.v3d.counters.everything = True
        device.gpu.on_counters = lambda name, values: shown.append((name, values))
        text = run_live(device, counting, str(tmp_path), ",".join(map(str, sources)))
        device.gpu.on_counters = None
        assert run_live(device, counting, str(tmp_path), ",".join(map(str, sources))) == text
    counted, number = text.splitlines()
    values = [int(value) for value in counted.split()]
    assert len(shown) == 4
    assert [name.rpartition(" ")[2] for name, _ in shown] == ["1", "2", "3", "4"]
    for _, table in shown:
        assert [table[source] for source in sources] == values
    assert sum(values) > 1000, values
    assert number == "2"
