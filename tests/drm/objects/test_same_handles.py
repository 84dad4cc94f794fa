# ruff: noqa: F821, RUF059 - clients are other programs
"""Jobs that name the same handles: what is remembered of them holds only as long as it is true."""

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.support.live_jobs import prepare, run_live, shader_index

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.device.vc4 import MAX_SET, MAX_SETS
from vc4lab.drm.objects.files import OpenFile
from vc4lab.qpu.text.assembler import assemble

GREEN = """
    ldi r0, 0xff00ff00
    sbwait
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


def test_handles_that_come_to_mean_something_else(device: DrmDevice, tmp_path: Path) -> None:
    """Each job is the same bytes as the one before; its handles stand for other buffers."""
    expected = prepare("tri_amd64", tmp_path)
    (tmp_path / "green.bin").write_bytes(assemble(GREEN).bytes)

    def client() -> None:
        live, shader = Live(sys.argv[1]), int(sys.argv[2])
        fd, colour = live.fd, live.colour

        def close(index):
            ioctl(fd, 0x09, "II", live.handles[index], 0, direction=1)

        def replace(index, size):
            close(index)
            assert create_bo(fd, size) == live.handles[index]
            live.views[index] = map_bo(fd, live.handles[index], size)

        def tries():
            try:
                return live.submit() and 0
            except OSError as error:
                return error.errno

        live.finish(live.submit(), "first")
        size, first = len(live.views[colour]), live.views[colour]
        first[:] = bytes(size)
        replace(colour, size)
        live.finish(live.submit(), "second")
        assert first[:] == bytes(size), "drawn into the buffer that had the handle before"
        replace(colour, 4096)
        assert tries() == errno.EINVAL, "a smaller buffer"
        replace(colour, size)
        for advice, result in ((1, errno.EINVAL), (0, 0)):
            ioctl(fd, 0x4B, "IIII", live.handles[colour], advice, 0, 0)
            assert tries() == result
        live.finish(live.submit(), "third")
        close(shader)
        assert tries() == errno.EINVAL, "no such handle"
        held, place = buffer(live.content("green"))
        made = ioctl(fd, 0x45, "IIQII", len(live.content("green")), 0, place, 0, 0)[3]
        assert made == live.handles[shader]
        live.finish(live.submit(), "green")
        close(shader)
        assert create_bo(fd, 4096) == live.handles[shader]
        assert tries() == errno.EINVAL, "not a shader's buffer"

    run_live(device, client, str(tmp_path), str(shader_index(tmp_path, 0)))
    for name in ("first", "second", "third"):
        assert (tmp_path / name).read_bytes() == expected
    green = (tmp_path / "green").read_bytes()
    assert green != expected
    assert b"\x00\xff\x00\xff" in green


def test_few_sets_of_handles_are_remembered(device: DrmDevice) -> None:
    """However many a program names, and however long they are."""
    file = OpenFile("renderD128", 1, "hostile")
    buffer: Any = SimpleNamespace(submit=None)
    handle = struct.pack("<I", file.buffers.add(buffer))
    lengths = set()
    for count in range(1, MAX_SET // 4 + 50):
        objects, _ = device.vc4._look_up(file, handle * count)
        assert objects == (buffer,) * count
        lengths.update(map(len, file.buffers.sets))
        assert 0 < len(file.buffers.sets) <= MAX_SETS
    assert max(lengths) == MAX_SET
