@ An interrupt whose handler does not clear it (a test lets it do so: nop becomes str r1, [r8]).
.include "common.inc"
.arch_extension virt
.global _start
_start:
    leave_hyp
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    ldr r8, =P + 0x3000
    ldr r9, =P + 0xb200
    mov r4, #0
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
    mov r1, #2
    str r1, [r9, #0x10]
    cpsie i
1:  add r2, r2, #1
    b 1b
interrupt:
    nop
    add r4, r4, #1
    subs pc, lr, #4
    .ltorg
    .align 5
vectors:
    .rept 6
    b .
    .endr
    b interrupt
    b .
