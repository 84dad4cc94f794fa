// The same as kernels/masked.s at EL1: two interrupts at once, taken one after the other where the mask is lifted.
// x20: handler calls seen right there, x21: rounds.
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
    mov x20, #0
    mov x21, #0
    ldr x8, =0x3f003000
    ldr x9, =0x3f00b200
    mov w1, #0xa
    str w1, [x9, #0x10]
1:  mov x10, #0
    ldr w1, [x8, #4]
    add w1, w1, #1000
    str w1, [x8, #0x10]
    str w1, [x8, #0x18]
    wfi
    msr daifclr, #2
    mov x4, x10
    msr daifset, #2
    add x20, x20, x4
    add x21, x21, #1
    cmp x21, #5
    b.lo 1b
2:  b 2b
handler:
    ldr w11, [x8]
    ands w12, w11, #2
    mov w13, #8
    csel w12, w12, w13, ne
    str w12, [x8]
    add x10, x10, #1
    eret
    .ltorg
    .align 11
vectors:
    .rept 5
    b .
    .align 7
    .endr
    b handler               // current level with SPx: IRQ
    .align 7
    .rept 10
    b .
    .align 7
    .endr
