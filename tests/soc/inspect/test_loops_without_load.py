"""Loops that can wait for nothing: SOC-040 says volatile."""

import pytest

from vc4lab.soc.machine import Machine, Stop

SAYS = "must be volatile"


def code(*words: str) -> bytes:
    return b"".join(bytes.fromhex(word)[::-1] for word in words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("e3a03000", "e3530005", "bafffffd", "e12fff1e"), True),  # 1: cmp r3, #5; blt 1b
        (("e3a03000", "e3530005", "aa000001", "e1a00000", "eafffffb", "e12fff1e"), True),
        # ldr r2, [r3]; cmp r2, #0; beq
        (("e3a03a02", "e5932040", "e3520000", "0afffffc", "e12fff1e"), False),
        # 1: bl 2f; cmp r3, #5; blt 1b; 2: bx lr
        (("e3a03000", "eb000001", "e3530005", "bafffffc", "e12fff1e"), False),
    ],
)
def test_loops_of_aarch32(boot, words, said):
    machine = boot(code(*words))
    result = machine.run()
    assert result.reason is Stop.HANG
    assert (SAYS in result.message) is said


def test_a_loop_of_aarch64(tmp_path):
    # mov w0, #0; 1: cmp w0, #5; b.ge 2f; nop; b 1b; 2: ret
    words = ("52800000", "7100141f", "5400006a", "d503201f", "17fffffd", "d65f03c0")
    (tmp_path / "kernel8.img").write_bytes(code(*words))
    result = Machine(tmp_path, "pi3").run()
    assert result.reason is Stop.HANG
    assert SAYS in result.message


def test_a_branch_to_itself_that_interrupts_come_back_to(boot):
    """What the compiler makes of `while (!done);` if done is read only once."""
    machine = boot("irq")
    image = bytes(machine.plan.image)
    wait, branch = code("e320f003"), code("eafffffe")
    assert wait in image
    result = boot(image.replace(wait, branch)).run()
    assert result.reason is Stop.HANG
    assert SAYS in result.message
