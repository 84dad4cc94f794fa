@ Polls a register beside a timer, or with timed pauses between; a test writes what into the words at the beginning.
@ Ends with the microseconds that it took in r10, and whether the register has changed in r11.
.include "common.inc"
.arch_extension virt
.global _start
_start:
    b 1f
    .word 0             @ the register
    .word 0             @ the timer; 0: the core's own counter
    .word 0             @ ticks of the timer
    .word 0             @ so many pauses of these; 0: a time-out
    .word P + 0x3000
1:  ldr r0, _start + 4
    ldr r1, _start + 8
    ldr r2, _start + 12
    ldr r3, _start + 16
    ldr r4, _start + 20
    mov r11, #0
    ldr r10, [r4, #4]
    ldr r5, [r0]
    cmp r3, #0
    bne 3f
    bl timer
    mov r7, r6
2:  ldr r8, [r0]
    cmp r8, r5
    movne r11, #1
    bne 9f
    bl timer
    sub r6, r6, r7
    cmp r6, r2
    blo 2b
    b 9f
3:  ldr r8, [r0]
    cmp r8, r5
    movne r11, #1
    bne 9f
    bl timer
    mov r7, r6
4:  bl timer
    sub r6, r6, r7
    cmp r6, r2
    blo 4b
    subs r3, r3, #1
    bne 3b
9:  ldr r8, [r4, #4]
    sub r10, r8, r10
    ready
timer:
    cmp r1, #0
    ldrne r6, [r1]
    bxne lr
    mrrc p15, 0, r6, r12, c14
    bx lr
