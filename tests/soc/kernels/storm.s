@ Exceptions without end on all cores: an undefined instruction, to which its handler returns.
.include "common.inc"
.arch_extension virt
.global _start
_start:
    leave_hyp
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    mrc p15, 0, r5, c0, c0, 5
    ands r5, r5, #3
    bne first
    ldr r0, =0x4000009c         @ mailbox 3 of core 1, 2, 3
    ldr r1, =_start
    mov r2, #3
1:  str r1, [r0], #0x10
    subs r2, r2, #1
    bne 1b
    sev
    b first                     @ a test puts nop here: core 0 does something else
1:  add r6, r6, #1
    b 1b
first:
    udf #1
    ready
undefined:
    subs pc, lr, #4
    .ltorg
    .align 5
vectors:
    b .
    b undefined
    b .
    b .
    b .
    b .
    b .
    b .
