@ Prints a line on the PL011, then another with byte writes, and ends.
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =UART
    adr r1, text
1:  ldr r3, [r0, #0x18]
    tst r3, #0x20
    bne 1b
    ldrb r2, [r1], #1
    cmp r2, #0
    strbne r2, [r0]
    bne 1b
    ready
text: .asciz "hello from the ARM\n"
