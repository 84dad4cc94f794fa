@ The older framebuffer channel: 32 x 16 at 16 bits, all red (565).
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =MAILBOX
    ldr r1, =structure
    orr r2, r1, #0xc0000001
    str r2, [r0, #0x20]
1:  ldr r3, [r0, #0x18]
    tst r3, #0x40000000
    bne 1b
    ldr r3, [r0]
    ldr r4, pointer
    bic r4, r4, #0xc0000000
    ldr r5, size
    ldr r6, =0xf800f800
2:  str r6, [r4], #4
    subs r5, r5, #4
    bhi 2b
    ready
    .ltorg
    .align 4
structure:
    .word 32, 16, 32, 16, 0, 16, 0, 0
pointer: .word 0
size: .word 0
