@ The timer of HYP mode interrupts in HYP mode; CNTVOFF sets the virtual count back. r4: interrupts, r5: CNTPCT - CNTVCT
@ (low word), r6: its high word, r7: core interrupt source seen, r8: CNTHP_CTL seen.
.include "common.inc"
.arch_extension virt
.global _start
_start:
    mov sp, #0x7000
    mov r4, #0
    ldr r0, =vectors
    mcr p15, 4, r0, c12, c0, 0
    ldr r0, =0x1000
    mov r1, #3
    mcrr p15, 4, r0, r1, c14        @ CNTVOFF
    isb
    mrrc p15, 0, r0, r1, c14
    mrrc p15, 1, r2, r3, c14
    subs r5, r0, r2
    sbc r6, r1, r3
    ldr r9, =0x40000000
    mov r0, #4
    str r0, [r9, #0x40]
    ldr r0, =20000
    mcr p15, 4, r0, c14, c2, 0      @ CNTHP_TVAL
    mov r0, #1
    mcr p15, 4, r0, c14, c2, 1      @ CNTHP_CTL
    cpsie i
1:  wfi
    cmp r4, #1
    blo 1b
    ready
handler:
    ldr r7, [r9, #0x60]
    mrc p15, 4, r8, c14, c2, 1
    mov r0, #0
    mcr p15, 4, r0, c14, c2, 1
    add r4, r4, #1
    eret
    .ltorg
    .align 5
vectors:
    .rept 6
    b .
    .endr
    b handler
    b .
