"""What a job compiles can be compiled for hosts with AArch64, too: LLVM ends the process if not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[1] / "data" / "vc4-jobs"

COMPILE = """
import sys
from pathlib import Path
import llvmlite.binding as llvm
from vc4lab.diagnostics import Reporter
from vc4lab.drm.kernel.hardware import run_job
from vc4lab.drm.recorded.jobs import RecordedRun
from vc4lab.simd import native
from vc4lab.simd.target import Target
from vc4lab.v3d.core import V3D

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
ARM = Target("generic", "generic", "", "aarch64-unknown-linux-gnu")
trace, compile_ir = native.trace_module, native.compile_ir
texts, sizes = {}, []

def trace_both(functions, target, float_mode):
    text = trace(functions, target, float_mode)
    texts[text] = trace(functions, ARM, float_mode)
    return text

def compile_both(ir, target, combine=True, quick=False, thorough=False):
    for hard in (thorough, True):
        sizes.append(len(compile_ir(texts[ir], ARM, combine, quick, hard)))
    return compile_ir(ir, target, combine, quick, thorough)

native.trace_module, native.compile_ir = trace_both, compile_both
run = RecordedRun(Path(sys.argv[1]), Reporter())
v3d = V3D(run.memory, Reporter())
for job in run.jobs:
    assert run_job(v3d, job.build(run.memory))
print(len(sizes), min(sizes))
"""


@pytest.mark.parametrize("job", ["tri_arm64"])
def test_a_job_compiles_for_arm64(job: str, tmp_path: Path) -> None:
    environment = os.environ | {"VC4LAB_CACHE": str(tmp_path)}  # nothing is known yet
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(JOBS / job)],
        env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    count, smallest = map(int, done.stdout.split())
    assert count > 20
    assert smallest > 500
