@ MMU on with one section, then a write, a read and a jump to unmapped addresses; r4..r9 keep DFSR, DFAR, IFSR, IFAR.
.include "common.inc"
.global _start
_start:
    leave_hyp
    mov sp, #0x8000
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    cps #0x17
    mov sp, #0x6000
    cps #0x13
    ldr r0, =0x4000
    ldr r1, =0x00000c02         @ section 0: identity
    str r1, [r0]
    ldr r1, =0x80000c02         @ the section at 0x80000000 lies there, too: RAM does not
    str r1, [r0, #4]
    mcr p15, 0, r0, c2, c0, 0
    mvn r1, #0
    mcr p15, 0, r1, c3, c0, 0
    mrc p15, 0, r1, c1, c0, 0
    orr r1, r1, #1
    mcr p15, 0, r1, c1, c0, 0
    isb
    ldr r0, =0x34567898
    str r0, [r0]
    mov r4, r10
    mov r5, r11
    ldr r1, [r0, #4]
    mov r6, r10
    mov r7, r11
    adr lr, 1f
    ldr pc, =0x45678900
1:  mov r8, r10
    mov r9, r11
    ready
data:
    mrc p15, 0, r10, c5, c0, 0
    mrc p15, 0, r11, c6, c0, 0
    subs pc, lr, #4             @ after the instruction
prefetch:
    mrc p15, 0, r10, c5, c0, 1
    mrc p15, 0, r11, c6, c0, 2
    adr lr, 1b
    movs pc, lr
    .ltorg
    .align 5
vectors:
    b .
    b .
    b .
    b prefetch
    b data
    b .
    b .
    b .
