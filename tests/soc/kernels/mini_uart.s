@ Finds "aux0", prints through the mini UART and echoes one typed character.
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =P + 0x215000
    ldr r1, [r0, #0x10]
    ldr r2, =0x61757830
    cmp r1, r2
    bne .
    mov r1, #1
    str r1, [r0, #4]
    mov r1, #'?'
    str r1, [r0, #0x40]
1:  ldr r1, [r0, #0x54]
    tst r1, #1
    beq 1b
    ldr r1, [r0, #0x40]
    str r1, [r0, #0x40]
    ready
