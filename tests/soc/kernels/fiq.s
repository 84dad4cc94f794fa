@ The system timer's line 1 as FIQ; main waits in a branch to itself, the handler counts and ends.
.include "common.inc"
.global _start
_start:
    leave_hyp
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    cps #0x11
    mov sp, #0x7000
    cps #0x13
    mov sp, #0x8000
    ldr r0, =P + 0xb200
    mov r1, #0x81
    str r1, [r0, #0xc]
    ldr r0, =P + 0x3000
    ldr r1, =2000
    str r1, [r0, #0x10]
    mov r7, #0
    cpsie f
1:  b 1b
handler:
    mov r8, #2
    ldr r9, =P + 0x3000
    str r8, [r9]
    add r7, r7, #1
    ldr r9, =P + 0xb200
    mov r8, #0
    str r8, [r9, #0xc]
    subs pc, lr, #4
    .ltorg
    .align 5
vectors:
    b .
    b .
    b .
    b .
    b .
    b .
    b .
    b handler
