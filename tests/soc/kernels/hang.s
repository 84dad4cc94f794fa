@ Polls a register that never changes: a mailbox reply that was not asked for.
.include "common.inc"
.global _start
_start:
    ldr r0, =MAILBOX
1:  ldr r1, [r0, #0x18]
    tst r1, #0x40000000
    bne 1b
    ready
