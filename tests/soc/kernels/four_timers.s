@ Four cores in wfe, each woken by its own timer 1000 times a second; r7 counts the interrupts, which end with sev.
.include "common.inc"
.arch_extension virt
.arch_extension mp
.global _start
_start:
    leave_hyp
    mrc p15, 0, r5, c0, c0, 5
    ands r5, r5, #3
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    mov r0, #0xd2
    msr cpsr_c, r0
    mov sp, #0x6000
    add sp, sp, r5, lsl #9
    mov r0, #0xd3
    msr cpsr_c, r0
    bne 1f
    ldr r0, =0x4000009c
    ldr r1, =_start
    str r1, [r0]
    str r1, [r0, #0x10]
    str r1, [r0, #0x20]
    dsb
    sev
1:  ldr r0, =0x40000040
    mov r1, #8
    str r1, [r0, r5, lsl #2]
    ldr r1, =1000
    mcr p15, 0, r1, c14, c3, 0
    mov r1, #1
    mcr p15, 0, r1, c14, c3, 1
    cpsie i
2:  wfe
    b 2b
irq:
    sub lr, lr, #4
    push {r0-r3, lr}
    ldr r0, =1000
    mcr p15, 0, r0, c14, c3, 0
    add r7, r7, #1
    sev
    pop {r0-r3, lr}
    movs pc, lr
    .ltorg
    .align 5
vectors:
    b .
    b .
    b .
    b .
    b .
    b .
    b irq
    b .
