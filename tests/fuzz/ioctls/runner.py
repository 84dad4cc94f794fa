"""Runs the hostile programs and looks at the device afterwards."""

import argparse
import faulthandler
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.descriptors import open_descriptors
from tests.support.drm_client import CLIENT

from vc4lab.diagnostics import Reporter
from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.drm.uapi.structures import Structure
from vc4lab.drm.uapi.submit import SUBMIT_FIELDS, SURFACES

JOB = Path(__file__).parents[2] / "data" / "vc4-jobs" / "tri_amd64"
SUBMIT = Structure("drm_vc4_submit_cl", SUBMIT_FIELDS)
KINDS: tuple[dict[str, Any], ...] = (
    {"memory": 64 << 20, "deep": False},
    {"memory": 1 << 20, "deep": False},
    {"memory": 16 << 20, "deep": True},
)
"""Devices: enough memory, hardly any, and one that follows descriptors over sockets."""


def valid_job() -> dict[str, Any]:
    """A recorded job for clients to hand in, right or not quite."""
    run = RecordedRun(JOB)
    job = run.jobs[0]
    submit = job.submit
    assert submit is not None
    run.contents.load(submit.buffers, run.memory)
    surfaces = {}
    for name in SURFACES:
        surface = submit.surface(name)
        surfaces |= {
            f"{name}_index": surface.hindex, f"{name}_offset": surface.offset,
            f"{name}_bits": surface.bits, f"{name}_flags": surface.flags,
        }  # fmt: skip
    values = SUBMIT.make(
        bin_cl_size=len(submit.bin_cl), shader_rec_size=len(submit.shader_rec),
        shader_rec_count=submit.shader_rec_count, uniforms_size=len(submit.uniforms),
        bo_handle_count=len(submit.buffers), width=submit.width, height=submit.height,
        min_x_tile=submit.min_x_tile, min_y_tile=submit.min_y_tile,
        max_x_tile=submit.max_x_tile, max_y_tile=submit.max_y_tile,
        clear_color=list(submit.clear_color), clear_z=submit.clear_z, clear_s=submit.clear_s,
        flags=submit.flags, **surfaces,
    )  # fmt: skip
    buffers = []
    for target in submit.buffers:
        data = run.memory.read(target.address, target.size)
        used = target.content_size if target.shader else target.size
        kept = data[:used] if target.shader else data.rstrip(b"\0")
        buffers.append({"shader": target.shader, "size": target.size, "data": kept.hex()})
    return {
        "buffers": buffers,
        "submit": SUBMIT.pack(values).hex(),
        **{name: getattr(submit, name).hex() for name in ("bin_cl", "shader_rec", "uniforms")},
    }


def one(
    count: int, seed: str, kind: dict[str, Any], *, clients: int = 3, steps: int = 1000
) -> dict[str, Any]:
    """So many ioctls on one device; what happened. Raises AssertionError for what is left."""
    reporter = Reporter()
    before = open_descriptors()
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        DrmDevice(
            paced=False, threads=2, gpu_memory=kind["memory"], deep=kind["deep"], reporter=reporter
        ) as device,
    ):
        numbers = [[number, declared.structure.size] for number, (declared, _) in device.table.items()]
        plan = {
            "seed": seed, "count": count, "clients": clients, "threads": 3, "steps": steps,
            "kills": 0.02, "job": valid_job(), "numbers": numbers,
        }  # fmt: skip
        path, script, out = (Path(folder, name) for name in ("plan", "client.py", "out"))
        path.write_text(json.dumps(plan))
        script.write_text(CLIENT + "\n" + Path(__file__).with_name("client.py").read_text())
        with out.open("wb") as file:
            code = device.run(
                [sys.executable, "-S", str(script), str(path)],
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        text = out.read_text(errors="replace")
        assert code == 0, f"the programs ended with {code}\n{text}"
        result: dict[str, Any] = json.loads(text.splitlines()[-1])
        patience = time.monotonic() + 60
        while (left := device.gpu.submitted - device.gpu.finished) and time.monotonic() < patience:
            time.sleep(0.01)
        assert not left, f"{left} jobs do not end"
        device.vc4.let_go()
        device.supervisor.descriptors.sweep()
        result["jobs"] = device.gpu.jobs
        result["calls"] = device.supervisor.calls
        if device.vc4.hang is not None:
            drop_hang(device)
        assert not device.core.files, f"open files of dead programs: {device.core.files}"
        assert not device.buffers.at, f"buffers of dead programs: {device.buffers.at}"
        device.buffers.reclaim()
        free = sum(size for _, size in device.memory.clients.free)
        assert free == kind["memory"], f"{kind['memory'] - free} bytes of memory are lost"
        assert not device.screen.frame_buffers, device.screen.frame_buffers
    result["seconds"] = time.monotonic() - start
    result["descriptors"] = open_descriptors() - before
    result["messages"] = dict(reporter.counts)
    return result


def drop_hang(device: DrmDevice) -> None:
    """What GET_HANG_STATE would have given away."""
    hang, device.vc4.hang = device.vc4.hang, None
    assert hang is not None
    for target in hang[0] if isinstance(hang, tuple) else hang.objects:
        device.buffers.drop(target)


def main() -> int:
    """Exit code 0 if nothing broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.ioctls")
    parser.add_argument("--count", type=int, default=30000, help="ioctls in all")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--patience", type=float, default=3600, help="seconds for all")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.patience, exit=True)
    total, failed = 0, False
    each = -(-options.count // len(KINDS))
    for number, kind in enumerate(KINDS):
        result = one(each, f"{options.seed}:{number}", kind, clients=options.clients)
        total += result["ioctls"]
        failed |= bool(result["faults"]) or result["ioctls"] < each
        print(json.dumps({**kind, **result}), flush=True)
    print(f"{total} ioctls: {'failed' if failed else 'nothing broke'}")
    faulthandler.cancel_dump_traceback_later()
    return int(failed)
