@ What goes to HYP mode from below: interrupts with HCR.IMO, masked or not; svc of user mode with HCR.TGE.
@ r4: interrupts in HYP mode, r5: CPSR they came from, r6: HSR of the svc, r7: CPSR it came from, r10: trail.
.include "common.inc"
.arch_extension virt
.global _start
_start:
    mov sp, #0x7000
    mov r4, #0
    mov r10, #0
    ldr r0, =vectors
    mcr p15, 4, r0, c12, c0, 0
    mov r0, #0x10               @ HCR.IMO
    mcr p15, 4, r0, c1, c1, 0
    ldr r8, =P + 0x3000
    ldr r9, =P + 0xb200
    ldr r0, =0x1d3
    msr spsr_cxsf, r0
    adr r0, supervisor
    msr ELR_hyp, r0
    eret
supervisor:
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
    mov r1, #2
    str r1, [r9, #0x10]
1:  cmp r4, #1
    blo 1b
    hvc #0                      @ HCR.TGE on
    cps #0x10
    svc #9
    b .
hypervisor:
    mrc p15, 4, r0, c5, c2, 0
    lsr r1, r0, #26
    cmp r1, #0x12
    bne 2f
    mov r1, #1 << 27
    mcr p15, 4, r1, c1, c1, 0
    orr r10, r10, #1
    eret
2:  mov r6, r0
    mrs r7, spsr
    orr r10, r10, #2
    eret
interrupt:
    mov r1, #2
    str r1, [r8]
    add r4, r4, #1
    mrs r5, spsr
    eret
    .ltorg
    .align 5
vectors:
    .rept 5
    b .
    .endr
    b hypervisor
    b interrupt
    b .
