@ A mode is left in the ways that start-up codes use; r4.. keep the modes seen. Ends in supervisor mode.
@ r4: at the start, r5: after smc (the firmware's monitor), r6, r7: r0 and r1 then, r8: after nop or cps,
@ r9: in supervisor mode, r10: in IRQ mode with a stack of its own, r11: back.
.include "common.inc"
.arch_extension virt
.arch_extension sec
.global _start
_start:
    mrs r4, cpsr
    smc #0
    mrs r5, cpsr
    mov r6, r0
    mov r7, r1
    nop                         @ a test puts cps #0x13 here
    mrs r8, cpsr
    mrs r0, cpsr
    eor r0, r0, #0x1a
    tst r0, #0x1f
    bic r0, r0, #0x1f
    orr r0, r0, #0xd3
    bne 1f
    orr r0, r0, #0x100
    adr lr, 2f
    msr spsr_cxsf, r0
    msr ELR_hyp, lr
    eret
1:  msr cpsr_c, r0
2:  mrs r9, cpsr
    mov sp, #0x7000
    cps #0x12
    mov sp, #0x6000
    mrs r10, cpsr
    msr cpsr_c, #0xd3
    mrs r11, cpsr
    ready
