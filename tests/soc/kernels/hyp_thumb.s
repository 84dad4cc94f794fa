@ HYP mode with Thumb handlers: svc and hvc of Thumb code, ELR_hyp and eret in Thumb code; r4.. keep what was seen.
.include "common.inc"
.arch_extension virt
.global _start
_start:
    mov r11, #0
    mov sp, #0x7000
    ldr r0, =vectors
    mcr p15, 4, r0, c12, c0, 0
    mrc p15, 4, r0, c1, c0, 0
    orr r0, r0, #1 << 30        @ HSCTLR.TE
    mcr p15, 4, r0, c1, c0, 0
    svc #5
    mrc p15, 4, r4, c5, c2, 0   @ HSR
    adr r0, thumb + 1
    bx r0
    .thumb
    .align 2
thumb:
    svc #6
    mrc p15, 4, r5, c5, c2, 0
    movw r0, #0x1f3             @ supervisor mode, Thumb
    msr spsr_cxsf, r0
    adr r0, supervisor
    msr ELR_hyp, r0
    mrs r6, ELR_hyp
    subs r6, r6, r0
    eret
    .align 2
supervisor:
    hvc #0x1234
    mrs r10, cpsr
    b .
undefined:
    b .
call:
    add r11, r11, #1
    eret
hypervisor:
    add r11, r11, #0x10
    mrc p15, 4, r7, c5, c2, 0
    mrs r8, spsr
    eret
    .ltorg
    .align 5
vectors:
    b.w .
    b.w undefined
    b.w call
    b.w .
    b.w .
    b.w hypervisor
    b.w .
    b.w .
