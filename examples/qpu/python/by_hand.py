"""Instruction by instruction: two arrays added by VPM and DMA, in py-videocore's words.

What an instruction does in its second ALU is a method of the first; labels are attributes of L.
"""

# ruff: noqa: B018, F403, F405
from vc4lab.kernels.assembly import *


@qpu(
    """
    kernel add(x: float[], y: float[], out z: float[x])
    uniforms x, y, z, len(x) // 256
    """
)
def add() -> None:
    """z = x + y, 256 values at a time, on one QPU: the rows of the VPM are its own."""
    mov(ra0, uniform)  # addresses
    mov(ra1, uniform)
    mov(ra2, uniform)
    mov(ra3, uniform)  # blocks of 16 rows
    ldi(rb4, 4 * 256)

    L.next
    for y, address in ((0, ra0), (16, ra1)):
        setup_dma_load(nrows=16, Y=y)
        start_dma_load(address)
        wait_dma_load()
    iadd(ra0, ra0, rb4)
    iadd(ra1, ra1, rb4)
    for row in range(16):
        setup_vpm_read(nrows=2, Y=row, stride=16)
        setup_vpm_write(Y=32 + row)
        mov(r0, vpm)
        mov(r1, vpm).mov(r2, r0)
        fadd(vpm, r1, r2)
    setup_dma_store(nrows=16, Y=32)
    start_dma_store(ra2)
    iadd(ra2, ra2, rb4)
    wait_dma_store()
    isub(ra3, ra3, 1)
    jzc(L.next)
    nop()
    nop()
    nop()
    exit()


if __name__ == "__main__":
    import numpy as np

    x = np.arange(512, dtype=np.float32)
    print(add(x, x))
    print(add.timing(x, x).text())
