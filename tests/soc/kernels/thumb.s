@ A Thumb loop of 1000 turns: 16- and 32-bit instructions count as one each.
.include "common.inc"
.global _start
_start:
    mrc p15, 0, r8, c9, c13, 0
    ldr r0, =thumb + 1
    bx r0
    .ltorg
    .align 12
    .thumb
thumb:
    movw r1, #1000
1:  nop
    nop
    movw r2, #0x1234
    add.w r3, r2, #1
    subs r1, #1
    bne 1b
2:  b 2b
