@ Four cores that compute, then poll their counters, while a timer interrupts each at its own period; r7 counts the interrupts.
@ The handler asks the local block where it comes from; that of core 0 reads the system timer, too.
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
1:  ldr r9, =0x40000040
    mov r1, #8
    str r1, [r9, r5, lsl #2]
    add r11, r5, r5, lsl #4
    add r11, r11, #97           @ counts from one interrupt to the next: 97, 114, 131, 148
    mcr p15, 0, r11, c14, c3, 0
    mov r1, #1
    mcr p15, 0, r1, c14, c3, 1
    mov r4, #0
    cpsie i
2:  add r4, r4, #1              @ computes for a while,
    and r1, r4, #0x3f
    add r1, r1, r5, lsl #4
    lsl r1, r1, #6
3:  subs r1, r1, #1
    bne 3b
    mrrc p15, 1, r2, r3, c14    @ then waits for 60 counts
    add r2, r2, #60
4:  mrrc p15, 1, r0, r1, c14
    subs r1, r0, r2
    bmi 4b
    tst r4, #7
    bne 2b
    wfe                         @ and now and then for the next interrupt
    b 2b
irq:
    sub lr, lr, #4
    push {r0-r3, lr}
    ldr r0, [r9, #0x20]
    ldr r0, =0x40000060
    ldr r0, [r0, r5, lsl #2]
    mcr p15, 0, r11, c14, c3, 0
    add r7, r7, #1
    cmp r5, #0
    ldreq r0, =P + 0x3000
    ldreq r1, [r0, #4]
    tst r7, #3
    bne 5f
    sev
5:  pop {r0-r3, lr}
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
