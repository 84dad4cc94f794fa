@ Two interrupts at once wait behind the mask: wfi ends, cpsie lets both in, one after the other, before the next
@ instruction. The handler serves one a time. r5: handler calls seen right there, r6: rounds.
.include "common.inc"
.global _start
_start:
    leave_hyp
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    cps #0x12
    mov sp, #0x7000
    cps #0x13
    mov r5, #0
    mov r6, #0
    ldr r8, =P + 0x3000
    ldr r9, =P + 0xb200
    mov r1, #0xa
    str r1, [r9, #0x10]
1:  mov r10, #0
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]         @ compare 1 and 3
    str r1, [r8, #0x18]
    wfi
    cpsie i
    mov r4, r10
    cpsid i
    add r5, r5, r4
    add r6, r6, #1
    cmp r6, #5
    blo 1b
    ready
handler:
    ldr r11, [r8]
    ands r12, r11, #2
    moveq r12, #8
    str r12, [r8]
    add r10, r10, #1
    subs pc, lr, #4
    .ltorg
    .align 5
vectors:
    .rept 6
    b .
    .endr
    b handler
    b .
