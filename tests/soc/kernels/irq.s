@ System timer 1 interrupts every millisecond; main sleeps in wfi, the handler counts to 5 in r10.
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
    mov r10, #0
    ldr r8, =P + 0x3000
    ldr r9, =P + 0xb200
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
    mov r1, #2
    str r1, [r9, #0x10]
    cpsie i
1:  wfi
    cmp r10, #5
    blo 1b
    cpsid i
    ready
handler:
    push {r0-r3, r12, lr}
    mov r1, #2
    str r1, [r8]
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
    add r10, r10, #1
    pop {r0-r3, r12, lr}
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
