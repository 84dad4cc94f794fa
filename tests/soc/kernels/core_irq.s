@ Core 1 counts 5 interrupts of its own physical timer in r10, then sends core 0 a mailbox interrupt, which ends it.
.include "common.inc"
.global _start
_start:
    leave_hyp
    ldr r0, =vectors0
    mcr p15, 0, r0, c12, c0, 0
    cps #0x12
    mov sp, #0x7000
    cps #0x13
    mov r10, #0
    ldr r8, =0x40000000
    mov r1, #1
    str r1, [r8, #0x50]         @ mailbox 0 of core 0 interrupts
    adr r1, secondary
    str r1, [r8, #0x9c]
    sev
    cpsie i
1:  wfi
    cmp r10, #0
    beq 1b
    cpsid i
    mrrc p15, 0, r6, r7, c14    @ ticks at the end
    ready
irq0:
    ldr r10, [r8, #0xc0]
    str r10, [r8, #0xc0]
    ldr r11, [r8, #0x60]
    subs pc, lr, #4
secondary:
    leave_hyp
    ldr r0, =vectors1
    mcr p15, 0, r0, c12, c0, 0
    mov r10, #0
    ldr r8, =0x40000000
    mov r1, #2
    str r1, [r8, #0x44]         @ non-secure physical timer of core 1
    ldr r9, =19200              @ 1 ms
    mcr p15, 0, r9, c14, c2, 0
    mov r1, #1
    mcr p15, 0, r1, c14, c2, 1
    cpsie i
2:  cmp r10, #5
    bne 2b
    ldr r1, =0xcafe
    str r1, [r8, #0x80]
    cpsid i
3:  wfe
    b 3b
irq1:
    ldr r11, [r8, #0x64]
    mcr p15, 0, r9, c14, c2, 0
    add r10, r10, #1
    subs pc, lr, #4
    .ltorg
    .align 5
vectors0:
    .rept 6
    b .
    .endr
    b irq0
    b .
vectors1:
    .rept 6
    b .
    .endr
    b irq1
    b .
