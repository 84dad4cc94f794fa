// Floating point at EL1 before CPACR_EL1 allows it, and after it forbids it again; then a misaligned PC.
// x20: syndrome of the first trap, x21: traps, x22: syndrome of the misaligned PC, x23: its FAR_EL1, x24: 3.0 + 4.0.
.global _start
_start:
    adr x0, vectors
    msr VBAR_EL1, x0
    mov x0, #(1 << 31)
    msr HCR_EL2, x0
    mov x0, #0x3c5
    msr SPSR_EL2, x0
    adr x0, el1
    msr ELR_EL2, x0
    eret
el1:
    mov x21, #0
    mov x9, #(3 << 20)
    fmov d0, #3.0
    msr CPACR_EL1, xzr
    isb
    fmov d1, #4.0
    fadd d0, d0, d1
    fcvtzs x24, d0
    adr x0, 1f + 2
    br x0
1:  b 1b
trapped:
    mrs x22, ESR_EL1
    lsr x1, x22, #26
    cmp x1, #7
    b.ne 1f
    add x21, x21, #1
    cmp x21, #1
    csel x20, x22, x20, eq
    msr CPACR_EL1, x9
    isb
    eret
1:  mrs x23, FAR_EL1
2:  b 2b
    .align 11
vectors:
    .rept 4
    b .
    .align 7
    .endr
    b trapped               // current level with SPx: synchronous
    .align 7
    .rept 11
    b .
    .align 7
    .endr
