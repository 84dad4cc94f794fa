"""`make conformance GPU_FFT=DIR`, with a transform of ours in the place of GPU_FFT's sources."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from benchmarks._conformance import gpu_fft, gpu_fft_times

from vc4lab.qpu.text.assembler import assemble

HEADER = """
/* BCM2835 "GPU_FFT" release 3.0 */
struct GPU_FFT_COMPLEX { float re, im; };
struct GPU_FFT_PTR {
    unsigned vc;
    union { struct GPU_FFT_COMPLEX *cptr; char *bptr; unsigned *uptr; } arm;
};
struct GPU_FFT_BASE { unsigned vc_code, vc_unifs[8]; };
struct GPU_FFT { struct GPU_FFT_BASE base; struct GPU_FFT_COMPLEX *in, *out; int step; };
int gpu_fft_alloc(int, unsigned, struct GPU_FFT_PTR *);
unsigned gpu_fft_base_exec(struct GPU_FFT_BASE *, int);
unsigned gpu_fft_ptr_inc(struct GPU_FFT_PTR *, int);
"""
PREPARE = """
#include <string.h>
#include "gpu_fft.h"
static const unsigned char code[] = { %s };
static struct GPU_FFT info;
int gpu_fft_prepare(int mailbox, int log2, int direction, int batch, struct GPU_FFT **fft)
{
    struct GPU_FFT_PTR place;
    if (log2 > 10 || gpu_fft_alloc(mailbox, 1 << 20, &place))
        return -2;
    memcpy(place.arm.bptr, code, sizeof code);
    info.base.vc_code = gpu_fft_ptr_inc(&place, 4096);
    for (int qpu = 0; qpu < 8; qpu++) {
        *place.arm.uptr = place.vc + 4096 - 4 * qpu + 64 * qpu;
        info.base.vc_unifs[qpu] = gpu_fft_ptr_inc(&place, 4);
    }
    gpu_fft_ptr_inc(&place, 4096 - 32);
    info.in = info.out = place.arm.cptr;
    info.step = 1 << log2;
    *fft = &info;
    return 0;
}
unsigned gpu_fft_execute(struct GPU_FFT *fft) { return gpu_fft_base_exec(&fft->base, 8); }
"""
ZEROS = """
        ldi  r1, 0x1a00
        add  vw_setup, r1, qpu_num      # this QPU's own row
        mov  vpm, 0
        ldi  r1, 0x80904000
        mov  r0, qpu_num
        shl  r0, r0, 7
        add  vw_setup, r1, r0
        mov  vw_addr, unif              # 16 words: eight points
        mov  -, vw_wait
        nop ; nop ; thrend
        nop
        nop
"""


def sources(folder: Path, program: str) -> Path:
    """GPU_FFT's files: each of eight programs gets the address of eight points of its own."""
    code = ", ".join(str(byte) for byte in assemble(program).bytes)
    folder.mkdir()
    (folder / "gpu_fft.h").write_text(HEADER)
    (folder / "gpu_fft.c").write_text(PREPARE % code)
    for name in gpu_fft.SOURCES[1:]:
        (folder / name).write_text("")
    return folder


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_cc
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_transform_is_started_on_eight_qpus(tmp_path: Path, engine: str) -> None:
    transforms = gpu_fft.Transforms(sources(tmp_path / "fft", ZEROS), engine)
    found = transforms.error(8, 2)
    wrong = whole = 0.0
    for job in range(2):
        points = np.zeros(256)
        points[[job + 1, -job - 1]] = 0.5
        if job == 0:
            points[:64] = 0  # what the programs stored
        wave = np.cos(2 * np.pi * (job + 1) * np.arange(256) / 256)
        whole += (wave**2).sum()
        wrong += ((wave - points) ** 2).sum()
    assert found == pytest.approx(np.sqrt(wrong / whole), rel=1e-6)


@needs_cc
def test_figures_stand_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(sources(tmp_path / "fft", ZEROS))
    rows = [gpu_fft.Figure(3, 8, 1, "0.33", "x"), gpu_fft.Figure(2, 8, 1, "0.5", "y")]
    monkeypatch.setattr(gpu_fft, "figures", lambda: rows)
    monkeypatch.setattr(gpu_fft.Transforms, "error", lambda *_: 3.349e-7)
    assert gpu_fft.main([folder]) == 0
    printed = capsys.readouterr().out
    assert "1 of 1 figures are equal in both digits" in printed
    assert "differs" not in printed
    monkeypatch.setattr(gpu_fft.Transforms, "error", lambda *_: 0.67e-7)
    assert gpu_fft.main([folder]) == 1
    assert "0.067  differs" in capsys.readouterr().out


def test_what_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_fft.main([str(tmp_path)]) == 2
    assert "is not GPU_FFT's folder: there is no gpu_fft.c" in capsys.readouterr().err
    folder = sources(tmp_path / "fft", ZEROS)
    (folder / "gpu_fft.h").write_text("int x;")
    assert gpu_fft.main([str(folder)]) == 2
    assert "does not say which release" in capsys.readouterr().err


@needs_cc
def test_sources_that_do_not_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sources(tmp_path / "fft", ZEROS)
    (folder / "gpu_fft.c").write_text("int x")
    assert gpu_fft.main([str(folder)]) == 2
    assert "do not compile" in capsys.readouterr().err


def test_published_figures() -> None:
    rows = gpu_fft.figures()
    assert len(rows) == 45
    assert {row.release for row in rows} == {2, 3}
    assert all(0.1 < float(row.error) < 1000 and len(row.source) > 5 for row in rows)


@needs_cc
def test_times_stand_beside_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(sources(tmp_path / "fft", ZEROS))
    rows = [
        gpu_fft_times.FftTime(8, 1, 100.0, "kept back", "A", "here"),
        gpu_fft_times.FftTime(8, 1, 1.0, "printed", "A", "there"),
        gpu_fft_times.FftTime(9, 64, 1.0, "printed", "A", "too long"),
    ]
    monkeypatch.setattr(gpu_fft_times, "times", lambda: rows)
    assert gpu_fft_times.main([folder, "--largest", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2
    first, second = (line.split(" | ") for line in lines[2:])
    assert first[3] == second[3]
    assert 0.1 < float(first[3]) < 20, "eight short programs, microseconds"
    assert first[5:] == ["here", "A", "kept back, not met |"]
    assert second[5:] == ["there", "A", "printed |"]


def test_what_contradicts_the_times_comes_first() -> None:
    near, far, open_ = (
        gpu_fft_times.FftTime(8, 8, 10, group, "A", "x") for group in ("kept back", "kept back", "printed")
    )
    lines = gpu_fft_times.table([(near, 11.0), (open_, 30.0), (far, 12.0)]).splitlines()[2:]
    assert [line.split(" | ")[4] for line in lines] == ["+20.0%", "+10.0%", "+200.0%"]
    assert ["not met" in line for line in lines] == [True, False, False]


def test_published_times() -> None:
    rows = gpu_fft_times.times()
    assert len(rows) == 30
    assert {row.group for row in rows} == {"fitted", "kept back", "printed"}
    assert all(10 < row.microseconds < 1e6 and row.source for row in rows)
    assert gpu_fft_times.main(["/nowhere"]) == 2
