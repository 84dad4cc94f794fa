@ HYP mode: exceptions to HVBAR, an interrupt, eret to supervisor mode, hvc back; r4.. keep what was seen.
.include "common.inc"
.arch_extension virt
.macro note register    @ the next byte of the trail in r11
    orr r11, \register, r11, lsl #4
.endm
.global _start
_start:
    mrs r4, cpsr
    mrc p15, 0, r5, c0, c0, 5
    mov r11, #0
    mov sp, #0x7000
    ldr r0, =vectors
    mcr p15, 4, r0, c12, c0, 0
    svc #5
    mrc p15, 4, r6, c5, c2, 0       @ HSR
    udf #1
    ldr r8, =P + 0x3000             @ an interrupt in a millisecond
    ldr r9, =P + 0xb200
    ldr r1, [r8, #4]
    add r1, r1, #1000
    str r1, [r8, #0x10]
    mov r1, #2
    str r1, [r9, #0x10]
    mrs r0, cpsr
    bic r0, r0, #0x80
    msr cpsr_c, r0
1:  wfi
    and r0, r11, #15
    cmp r0, #0x6
    bne 1b
    ldr r0, =0x1d3
    msr spsr_cxsf, r0
    adr r0, supervisor
    msr ELR_hyp, r0
    mrs r7, ELR_hyp
    sub r7, r7, r0
    eret
supervisor:
    mov sp, #0x6000
    mrs r10, cpsr
    ldr r0, =vectors1
    mcr p15, 0, r0, c12, c0, 0
    svc #6
    hvc #7
    mrs r0, cpsr
    sub r10, r10, r0                @ the same as before
    ready

undefined:
    mov r0, #1
    note r0
    mrs r0, ELR_hyp
    add r0, r0, #4
    msr ELR_hyp, r0
    eret
call:
    mov r0, #2
    note r0
    eret
hypervisor:
    mov r0, #5
    note r0
    mrc p15, 4, r12, c5, c2, 0
    mrs r0, spsr
    and r0, r0, #0x1f
    cmp r0, #0x13
    eret
interrupt:
    mov r0, #6
    note r0
    mov r0, #2
    str r0, [r8]
    eret
supervisor_call:
    mov r0, #8
    note r0
    movs pc, lr
    .ltorg
    .align 5
vectors:
    b .
    b undefined
    b call
    b .
    b .
    b hypervisor
    b interrupt
    b .
vectors1:
    b .
    b .
    b supervisor_call
    b .
    b .
    b .
    b .
    b .
