@ Polls the pending register for ten vsyncs and acknowledges them; r4 counts, r5 has the time.
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =P + 0xb200
    ldr r1, =P + 0x600000
    mov r2, #1 << 16
    str r2, [r0, #0x14]
    mov r4, #0
1:  ldr r3, [r0, #8]
    tst r3, #1 << 16
    beq 1b
    mov r3, #0
    str r3, [r1]
    add r4, r4, #1
    cmp r4, #10
    blo 1b
    ldr r0, =P + 0x3000
    ldr r5, [r0, #4]
    ready
