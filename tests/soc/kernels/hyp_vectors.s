@ Stays in HYP mode, puts handlers at 0 and lets a timer interrupt it, as programs for a Pi 1 do.
@ r4: interrupts served, r5: undefined instructions.
.include "common.inc"
.arch_extension virt
.global _start
_start:
    mov r4, #0
    mov r5, #0
    mov r0, #0
    ldr r1, =0xe59ff018         @ ldr pc, [pc, #24]
    ldr r2, =handler
    ldr r3, =undefined
    str r1, [r0, #0x18]
    str r2, [r0, #0x38]
    str r1, [r0, #4]
    str r3, [r0, #0x24]
    ldr r8, =P + 0x3000
    ldr r9, =P + 0xb200
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
    mov r1, #2
    str r1, [r9, #0x10]
    cpsie i
1:  wfi
    cmp r4, #1
    blo 1b
    ready
undefined:
    mov r5, #1
    ready
handler:
    mov r1, #2
    str r1, [r8]
    add r4, r4, #1
    eret                        @ a test puts subs pc, lr, #4 here
