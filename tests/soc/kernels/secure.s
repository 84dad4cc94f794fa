@ Begins in the secure state at address 0 (kernel_old=1), sets MVBAR and goes to HYP mode by its own monitor.
@ r4, r5: CPSR and SCR at the start, r6: MVBAR - vectors, r7: CPSR after smc, r8: SCR read by hvc's handler's caller
@ (not secure: undefined; r9 counts), r10: MPIDR in HYP mode.
.include "common.inc"
.arch_extension virt
.arch_extension sec
.global _start
_start:
    mrc p15, 0, r0, c0, c0, 5
    ands r0, r0, #3
1:  wfene
    bne 1b
    mrs r4, cpsr
    mrc p15, 0, r5, c1, c1, 0
    adr r0, vectors
    mcr p15, 0, r0, c12, c0, 1
    mrc p15, 0, r6, c12, c0, 1
    sub r6, r6, r0
    mov r9, #0
    smc #0
    mrs r7, cpsr
    mrc p15, 0, r10, c0, c0, 5
    adr r0, vectors
    mcr p15, 4, r0, c12, c0, 0
    mov r8, #0
    mrc p15, 0, r8, c1, c1, 0
    ready
monitor:
    ldr r0, =0x131
    mcr p15, 0, r0, c1, c1, 0
    ldr r0, =0x1da
    msr spsr_cxsf, r0
    movs pc, lr
undefined:
    add r9, r9, #1
    mrs r0, ELR_hyp
    add r0, r0, #4
    msr ELR_hyp, r0
    eret
    .ltorg
    .align 5
vectors:
    b .
    b undefined
    b monitor
    b .
    b .
    b .
    b .
    b .
