@ Asks for 64 x 48 at 32 bits by property tags and draws x ^ y in RGB order.
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =MAILBOX
    ldr r1, =message
    orr r2, r1, #0xc0000008
    str r2, [r0, #0x20]
1:  ldr r3, [r0, #0x18]
    tst r3, #0x40000000
    bne 1b
    ldr r3, [r0]
    ldr r4, base
    bic r4, r4, #0xc0000000
    ldr r5, pitch
    mov r6, #0                  @ y
2:  mov r7, #0                  @ x
    mla r8, r6, r5, r4
3:  eor r9, r7, r6
    orr r9, r9, r6, lsl #16
    str r9, [r8], #4
    add r7, r7, #1
    cmp r7, #64
    blo 3b
    add r6, r6, #1
    cmp r6, #48
    blo 2b
    ready
    .ltorg
    .align 4
message:
    .word end - message, 0
    .word 0x48003, 8, 8, 64, 48
    .word 0x48004, 8, 8, 64, 48
    .word 0x48005, 4, 4, 32
    .word 0x48006, 4, 4, 1
    .word 0x40001, 8, 4
base: .word 16, 0
    .word 0x40008, 4, 0
pitch: .word 0
    .word 0
end:
