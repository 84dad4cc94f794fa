@ Waits for a word in RAM that is never written.
.include "common.inc"
.global _start
_start:
    mov r0, #0x100000
1:  ldr r1, [r0]
    cmp r1, #0
    beq 1b
    ready
