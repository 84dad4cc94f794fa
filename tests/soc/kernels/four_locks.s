@ As ../kernels64/four_locks.s, in AArch32: r8 counts the interrupts of a core.
.include "common.inc"
.arch_extension virt
.arch_extension mp
.global _start
.equ TABLE, 0x100000
.equ LOCK, 0x110000
.equ SHARED, LOCK + 0x40
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
    bne 3f
    ldr r0, =TABLE              @ sections: cached memory, shared devices from 0x3f000000 on
    ldr r1, =0x11c0e            @ normal, write-back, shared, for all
    mov r2, #0
    ldr r3, =0x3f000000
1:  add r4, r1, r2
    cmp r2, r3
    bicge r4, r4, #0x1000
    bicge r4, r4, #8
    str r4, [r0], #4
    adds r2, r2, #0x100000
    cmp r2, #0x50000000
    bne 1b
    ldr r0, =LOCK
    mov r1, #0
    str r1, [r0]
    str r1, [r0, #0x40]
    ldr r0, =0x4000009c
    ldr r1, =_start
    str r1, [r0]
    str r1, [r0, #0x10]
    str r1, [r0, #0x20]
    dsb
    sev
3:  ldr r0, =TABLE + 0x4a       @ tables in cached, shared memory
    mcr p15, 0, r0, c2, c0, 0
    mov r0, #0
    mcr p15, 0, r0, c2, c0, 2
    mcr p15, 0, r0, c8, c7, 0
    mvn r0, #0
    mcr p15, 0, r0, c3, c0, 0
    isb
    mrc p15, 0, r0, c1, c0, 0
    orr r0, r0, #5
    orr r0, r0, #0x1000
    mcr p15, 0, r0, c1, c0, 0
    isb
    ldr r0, =0x40000040
    mov r1, #2
    str r1, [r0, r5, lsl #2]
    ldr r9, =500                @ microseconds, as the firmware sets the counter
    add r0, r9, r5, lsl #7      @ one after the other
    mcr p15, 0, r0, c14, c2, 0
    mov r1, #1
    mcr p15, 0, r1, c14, c2, 1
    mov r8, #0
    mov r12, #0
    ldr r10, =LOCK
    ldr r11, =SHARED
    cpsie i
idle:
    wfe                         @ what others send wakes it, too
    cmp r8, r12
    beq idle
    mov r12, r8
    mov r2, #1
5:  ldrex r3, [r10]
    cmp r3, #0
    wfene
    bne 5b
    strex r4, r2, [r10]
    cmp r4, #0
    bne 5b
    dmb
    ldr r3, [r11]
    add r3, r3, #1
    str r3, [r11]
    dmb
    mov r3, #0
    str r3, [r10]
    dsb
    sev
    b idle
irq:
    sub lr, lr, #4
    push {r0-r3, lr}
    ldr r0, =0x40000060
    ldr r1, [r0, r5, lsl #2]    @ the source
    mrc p15, 0, r0, c14, c2, 0
    add r0, r0, r9
    mcr p15, 0, r0, c14, c2, 0
    add r8, r8, #1
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
