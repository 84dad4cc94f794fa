@ Waits for a word in RAM that the vsync's interrupt handler writes; r4 has the time.
.include "common.inc"
.global _start
_start:
    leave_hyp
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    cps #0x12
    mov sp, #0x7000
    cps #0x13
    mov sp, #0x8000
    ldr r9, =P + 0xb200
    mov r1, #1 << 16
    str r1, [r9, #0x14]
    mov r8, #0x100000
    cpsie i
1:  ldr r1, [r8]
    cmp r1, #3
    blo 1b
    cpsid i
    ldr r0, =P + 0x3000
    ldr r4, [r0, #4]
    ready
handler:
    push {r0-r3, lr}
    ldr r0, =P + 0x600000
    mov r1, #0
    str r1, [r0]
    ldr r1, [r8]
    add r1, r1, #1
    str r1, [r8]
    pop {r0-r3, lr}
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
    b handler
    b .
