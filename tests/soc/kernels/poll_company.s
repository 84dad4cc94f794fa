@ Core 0 waits 20 ms for the system timer while core 1 polls its mailbox between two wfe; then it sends core 1 a word.
.include "common.inc"
.arch_extension mp
.global _start
_start:
    ldr r8, =0x40000000
    adr r1, secondary
    str r1, [r8, #0x9c]
    sev
    ldr r4, =P + 0x3000
    ldr r5, [r4, #4]
    ldr r6, =20000
1:  ldr r0, [r4, #4]
    sub r0, r0, r5
    cmp r0, r6
    blo 1b
    mov r1, #77
    str r1, [r8, #0x90]
    dsb
    sev
2:  ldr r0, [r8, #0xd0]
    cmp r0, #0
    bne 2b
    ready
secondary:
    ldr r8, =0x40000000
1:  wfe
    ldr r10, [r8, #0xd0]
    cmp r10, #0
    beq 1b
    ldr r4, =P + 0x3000
    ldr r11, [r4, #4]
    str r10, [r8, #0xd0]
2:  wfe
    b 2b
