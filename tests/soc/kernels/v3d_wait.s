@ Shows a picture, starts a rendering list that is only a Halt (0), and polls RFC, which never counts. Core 1 polls its
@ mailbox beside, if the word after the first instruction is not 0.
.include "common.inc"
.arch_extension mp
.global _start
_start:
    b 1f
    .word 1
1:  begin
    ldr r0, =MAILBOX
    ldr r1, =message
    orr r2, r1, #0xc0000008
    str r2, [r0, #0x20]
2:  ldr r3, [r0, #0x18]
    tst r3, #0x40000000
    bne 2b
    ldr r3, [r0]
    ldr r4, base
    bic r4, r4, #0xc0000000
    mvn r5, #0
    str r5, [r4]
    ldr r5, _start + 4
    cmp r5, #0
    beq 3f
    ldr r8, =0x40000000
    adr r1, secondary
    str r1, [r8, #0x9c]
    sev
3:  ldr r0, =P + 0xc00000
    ldr r1, =list
    str r1, [r0, #0x114]
    add r1, r1, #16
    str r1, [r0, #0x10c]
4:  ldr r2, [r0, #0x138]
    cmp r2, #0
    beq 4b
    ready
secondary:
    ldr r8, =0x40000000
5:  ldr r10, [r8, #0xd0]
    cmp r10, #0
    beq 5b
    b 5b
    .ltorg
    .align 4
list:
    .space 16
message:
    .word end - message, 0
    .word 0x30012, 4, 4, 1
    .word 0x48003, 8, 8, 64, 48
    .word 0x48004, 8, 8, 64, 48
    .word 0x48005, 4, 4, 32
    .word 0x40001, 8, 4
base: .word 16, 0
    .word 0
end:
