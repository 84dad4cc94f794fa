@ Stops as a panic does: interrupts masked and one of them pending, wfi for ever.
.include "common.inc"
.global _start
_start:
    leave_hyp
    cpsid i
    cpsie f                     @ a FIQ could come, but none is asked for
    ldr r8, =P + 0x3000
    ldr r9, =P + 0xb200
    mov r1, #2
    str r1, [r9, #0x10]         @ enable timer 1
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
1:  wfi
    b 1b
    .ltorg
