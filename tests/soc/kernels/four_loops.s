@ Four cores that wait in loops of four kinds, each until a neighbour's timer interrupt counts its word up, or its own comes:
@ a load, nothing but a comparison, twenty branches, Thumb code with interrupts masked. Then each does something else.
.include "common.inc"
.arch_extension virt
.arch_extension mp
.global _start
.equ WORDS, 0x100000
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
    ldr r0, =WORDS
    mov r1, #0
    str r1, [r0]
    str r1, [r0, #4]
    str r1, [r0, #8]
    str r1, [r0, #12]
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
    ldr r8, =WORDS
    add r8, r8, r5, lsl #2
    mov r7, #0
    mov r10, #0
    mov r4, #0
    cmp r5, #1
    beq computes
    cmp r5, #2
    beq branches
    bhi masked
    cpsie i
loads:
    ldr r0, [r8]
    cmp r0, r10
    beq loads
    mov r10, r0
    ldr r0, =P + 0x3000         @ then looks at a device
    ldr r1, [r0, #4]
    add r4, r4, #1
    b loads
computes:
    cpsie i
2:  nop
    cmp r7, r10
    beq 2b
    mov r10, r7
    wfe                         @ then sleeps
    add r4, r4, #1
    b 2b
branches:
    cpsie i
3:
    .rept 20
    b 4f
    nop
4:
    .endr
    ldr r0, [r8]
    cmp r0, r10
    beq 3b
    mov r10, r0
    svc #0                      @ then takes an exception
    b 3b
masked:
    mov r2, r8
    mov r3, r10
    adr r1, 5f + 1
    blx r1
    mov r10, r0
    add r4, r4, #1
    tst r4, #3
    bne masked
    cpsie i                     @ then takes the interrupt that waits
    nop
    cpsid i
    b masked
    .thumb
5:  ldr r0, [r2]
    cmp r0, r3
    beq 5b
    bx lr
    .arm
irq:
    sub lr, lr, #4
    push {r0-r3, lr}
    ldr r0, [r9, #0x20]
    ldr r0, =0x40000060
    ldr r0, [r0, r5, lsl #2]
    mcr p15, 0, r11, c14, c3, 0
    add r7, r7, #1
    tst r7, #3
    bne 6f
    add r0, r5, #1
    and r0, r0, #3
    ldr r1, =WORDS
    ldr r2, [r1, r0, lsl #2]
    add r2, r2, #1
    str r2, [r1, r0, lsl #2]
    tst r7, #7
    bne 6f
    sev
6:  pop {r0-r3, lr}
    movs pc, lr
system_call:
    add r4, r4, #1
    movs pc, lr
    .ltorg
    .align 5
vectors:
    b .
    b .
    b system_call
    b .
    b .
    b .
    b irq
    b .
