@ Enables the V3D by mailbox, reads its identity into r9, starts a rendering thread three times.
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =MAILBOX
    ldr r1, =message + 8
    str r1, [r0, #0x20]
1:  ldr r3, [r0, #0x18]
    tst r3, #0x40000000
    bne 1b
    ldr r3, [r0]
    ldr r0, =P + 0xc00000
    ldr r9, [r0]
    mov r4, #3
2:  mov r1, #0x10000
    str r1, [r0, #0x114]
    add r1, r1, #16
    str r1, [r0, #0x10c]
    subs r4, r4, #1
    bhi 2b
    ready
    .ltorg
    .align 4
message:
    .word 28, 0, 0x30012, 4, 4, 1, 0
