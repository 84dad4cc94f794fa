// From EL2 by ERET to EL1, then SVC, an undefined word, HVC and an abort under the MMU; x19.. keep what was seen.
.global _start
_start:
    mrs x19, CurrentEL
    mov x28, #0
    ldr x0, =0x70000
    msr SP_EL1, x0
    mov sp, x0
    adr x0, vectors
    msr VBAR_EL1, x0
    adr x0, vectors2
    msr VBAR_EL2, x0
    mov x0, #(1 << 31)
    msr HCR_EL2, x0
    mov x0, #0x3c5
    msr SPSR_EL2, x0
    adr x0, el1
    msr ELR_EL2, x0
    eret
el1:
    mrs x20, CurrentEL
    svc #7
    mov x21, x1             // ESR of the svc
    .word 0
    mov x22, x1
    hvc #3
    mov x25, x1
    // page tables: 1 GiB identity by 2 MiB blocks for the first 2 MiB only
    ldr x0, =0x60000
    ldr x1, =0x61003
    str x1, [x0]
    ldr x2, =0x61000
    ldr x1, =0x705
    str x1, [x2]
    msr TTBR0_EL1, x0
    ldr x1, =(25 | (1 << 23) | (0 << 14))
    msr TCR_EL1, x1
    mov x1, #0xff
    msr MAIR_EL1, x1
    isb
    mrs x1, SCTLR_EL1
    orr x1, x1, #1
    msr SCTLR_EL1, x1
    isb
    ldr x3, =0x12345678
    str x3, [x3]            // aborts: no page there
    mov x23, x1             // ESR
    mov x24, x2             // FAR
1:  wfe
    b 1b
    .ltorg
    .align 11
vectors:
    .rept 4                 // current level with SP0
    b .
    .align 7
    .endr
    mrs x1, ESR_EL1         // current level with SPx: synchronous
    mrs x2, FAR_EL1
    add x28, x28, #1
    lsr x4, x1, #26
    cmp x4, #0x15
    beq 2f
    mrs x4, ELR_EL1
    add x4, x4, #4
    msr ELR_EL1, x4
2:  eret
    .align 11
vectors2:
    .rept 8
    b .
    .align 7
    .endr
    mrs x1, ESR_EL2         // from a lower level in AArch64: synchronous
    add x28, x28, #1
    eret
