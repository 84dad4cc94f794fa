@ Changes to the secure state by smc, as programs do that put a handler at the firmware's monitor vectors (r4 = 1 in the
@ handler, r5 = CPSR after it); then lets the generic timer count microseconds and waits for 1000 of them (r6).
.include "common.inc"
.arch_extension sec
.global _start
_start:
    leave_hyp
    begin
    mov r4, #0
    mov r0, #8
    ldr r1, =0xe59ff018         @ ldr pc, [pc, #24]
    str r1, [r0]
    adr r1, monitor
    str r1, [r0, #0x20]
    smc #0
    mrs r5, cpsr
    ldr r8, =0x40000000
    ldr r1, =0x06aaaaab
    str r1, [r8, #8]
    ldr r1, =1000000
    mcr p15, 0, r1, c14, c0, 0
    mrc p15, 0, r7, c14, c0, 0
    ldr r2, =P + 0x3000
    ldr r6, [r2, #4]
    mov r1, #1000
    mcr p15, 0, r1, c14, c2, 0
    mov r1, #1
    mcr p15, 0, r1, c14, c2, 1
1:  mrc p15, 0, r1, c14, c2, 1
    tst r1, #4
    beq 1b
    ldr r1, [r2, #4]
    sub r6, r1, r6
    ready
monitor:
    mrc p15, 0, r1, c1, c1, 0
    bic r1, r1, #1
    mcr p15, 0, r1, c1, c1, 0
    mov r4, #1
    movs pc, lr
