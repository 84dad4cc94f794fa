"""Kernels written instruction by instruction: what a call becomes, and mistakes with file and line."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.kernels.python_examples import example

from vc4lab.kernels import assembly as q
from vc4lab.kernels.python import KernelSourceError
from vc4lab.qpu.text.assembler import assemble

PAIR = "fadd.setf ra0, ra0, r0; fmul r0, r4, unif"
INTERFACE = "kernel f(n: int)"


def words(function: Callable[[], object]) -> tuple[int, ...]:
    found = q.qpu(INTERFACE)(function).assembly
    assert found is not None
    return found.words


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_the_example(engine: str) -> None:
    add = example("by_hand").add
    add.engine = engine
    x, y = np.random.default_rng(1).integers(-99, 99, (2, 512)).astype(np.float32)
    np.testing.assert_array_equal(add(x, y), x + y)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: q.fadd(q.ra[0], q.ra[0], q.r0).fmul(q.r0, q.r4, q.uniform), PAIR),
        (lambda: q.iadd(q.r0, q.r1, -3, set_flags=False, cond="zs"), "add.zs r0, r1, -3"),
        (lambda: q.mov(q.null, q.uniform, set_flags=True), "mov.setf -, unif"),
        (lambda: q.mov(q.r0, q.r4, sig="load tmu0"), "mov r0, r4; nop; ldtmu0"),
        (lambda: q.rotate(q.broadcast, q.r2, -4), "nop; mov r5rep, r2 >> 12"),
        (lambda: q.rotate(q.r1, q.r2, q.r5), "nop; mov r1, r2 >> r5"),
        (lambda: q.fmul(q.r0, q.ra1, 0.5), "nop; fmul r0, ra1, 0.5"),
        (lambda: q.ldi(q.null, [1, 3], set_flags=True), f"ldi.setf -, [1, 3{14 * ', 0'}]"),
        (lambda: q.ldi(q.r0, q.rb[3], 7), "ldi r0, 7; ldi rb3, 7"),
        (lambda: q.iadd(q.ra1.pack("16a"), q.ra2.unpack("16b"), q.rb0), "add.setf ra1.16a, ra2.16b, rb0"),
        (lambda: q.nop().mov(q.ra1.pack("8b sat"), q.r0), "nop; mov ra1.8bs, r0; pm0"),
        (lambda: q.bor(q.r0, q.r1, q.r2).v8adds(q.r3, q.r1, q.r2), "or.setf r0, r1, r2; v8adds r3, r1, r2"),
        (lambda: q.sema_up(3), "srel -, 3"),
        (lambda: q.sema_down(3), "sacq -, 3"),
        (lambda: q.start_dma_load(q.r5), "mov vr_addr, r5"),
        (lambda: q.start_dma_store(q.r2, rot=2), "nop; mov vw_addr, r2 >> 2"),
        (lambda: q.setup_vpm_write(mode="32bit vertical", Y=16, X=3), "ldi vw_setup, 0x1213"),
        (lambda: q.setup_vpm_read(16, mode="16bit packed horizontal", Y=2, H=1), "ldi vr_setup, 0x1905"),
        (lambda: q.setup_dma_store(mode="32bit horizontal", Y=16, nrows=16), "ldi vw_setup, 0x88104800"),
        (lambda: q.setup_dma_load(nrows=16, Y=16, mpitch=0), "ldi vr_setup, 0x80001100"),
        (lambda: q.setup_dma_store_stride(0x40), "ldi vw_setup, 0xc0000040"),
        (lambda: q.setup_dma_load_stride(q.r5, tmp_reg=q.r3), "ldi r3, 0x90000000\nor.setf vr_setup, r3, r5"),
        (lambda: q.raw(0x12345678, 0x9ABCDEF0), ".quad 0x9abcdef012345678"),
        (lambda: q.jmp(reg=q.ra[4], absolute=True, link=q.ra[5]), "bra ra5, ra4 + 0"),
    ],
)  # fmt: skip
def test_instructions(call: Callable[[], object], line: str) -> None:
    assert words(call) == assemble(f"{line}\n").words


def test_labels_and_name_spaces() -> None:
    def body() -> None:
        for name in ("one", "two"):
            with q.namespace(name):
                q.L.loop  # noqa: B018
                q.jzc(q.L.loop)
                q.jcs_any(q.L.out)
                q.L.out  # noqa: B018

    source = "a: brr.allnz -, a\nbrr.anyc -, b\nb: brr.allnz -, b\nbrr.anyc -, c\nc:\n"
    assert words(body) == assemble(source).words


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: q.fadd(q.ra[0], q.rb[1], q.rb[2]), "file B"),
        (lambda: q.fadd(q.r0, q.r1, 17), "small immediate"),
        (lambda: q.fadd(q.r0, q.r1), "2 operands"),
        (lambda: q.fadd(3, q.r1, q.r1), "no register that is written"),
        (lambda: q.mov(q.r0, "ra77"), "ra77"),
        (lambda: q.mov(q.r0, None), "no operand"),
        (lambda: q.mov(q.r0, 1, cond="zz"), "no condition 'zz'"),
        (lambda: q.nop(sig="load tmu7"), "no signal 'load tmu7'"),
        (lambda: q.mov(q.r0, 1, colour=2), "no option colour"),
        (lambda: q.mov(q.r0, 1).mov(q.r1, 1).mov(q.r2, 1), "already does something"),
        (lambda: q.mov(q.r0, q.r4, sig="load tmu0").mov(q.r1, q.r0, sig="load tmu1"), "one signal"),
        (lambda: q.jmp(q.L.nowhere), "nowhere"),
        (lambda: q.jmp(q.L.here, reg=q.ra[1]), "to a label, or to a register"),
        (lambda: q.ldi(q.r0, [5]), "5"),
        (lambda: q.sema_up(16), "16"),
        (lambda: q.setup_vpm_write(mode="64bit horizontal"), "VPM mode"),
    ],
)
def test_mistakes_have_file_and_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(KernelSourceError, match=message) as caught:
        words(call)
    line = call.__code__.co_firstlineno
    assert f"{__file__}:{line}: " in str(caught.value)


def test_instructions_stand_in_kernels() -> None:
    with pytest.raises(KernelSourceError, match="outside of a kernel"):
        q.nop()
    with pytest.raises(KernelSourceError, match="no type fish"):
        _ = q.qpu("kernel f(x: fish[])")(q.exit).code
    with pytest.raises(KernelSourceError, match="interface is missing"):
        _ = q.qpu("f(x: float[])")(q.exit).code
