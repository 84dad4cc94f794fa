@ Uses RAM and UART through the upper address bits, which do nothing on a Pi 1 or Zero.
.include "common.inc"
.global _start
_start:
    ldr r0, =0xc0006000
    mov r1, #77
    str r1, [r0]
    mov r3, #0x6000
    ldr r4, [r3]
    ldr r0, =0x80006000
    ldr r5, [r0]
    ldr r0, =0xa0201000            @ the UART of these boards
    mov r1, #'U'
    str r1, [r0]
    ready
