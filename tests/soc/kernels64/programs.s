// A program at EL0 with a system at EL1: system calls and faults, each logged from 0x200000 on
// (ESR, FAR, ELR, SPSR, SP, SP_EL0), x20 is the log's end. Faults far from each other and close together.
.global _start
_start:
    adr x0, vectors
    msr VBAR_EL1, x0
    mov x0, #(1 << 31)
    msr HCR_EL2, x0
    mov x0, #0x3c5
    msr SPSR_EL2, x0
    adr x0, el1
    msr ELR_EL2, x0
    eret
el1:
    ldr x0, =0x60000        // level 1: the first GiB by 2 MiB blocks
    ldr x1, =0x61003
    str x1, [x0]
    ldr x2, =0x61000
    ldr x1, =0x7c5          // 0: code, read-only for both levels
    str x1, [x2]
    ldr x1, =0x200705       // 2 MiB: for EL1 only
    str x1, [x2, #8]
    msr TTBR0_EL1, x0
    ldr x1, =(25 | (1 << 23) | (0 << 14))
    msr TCR_EL1, x1
    mov x1, #0xff
    msr MAIR_EL1, x1
    isb
    mrs x1, SCTLR_EL1
    orr x1, x1, #1
    msr SCTLR_EL1, x1
    isb
    ldr x0, =0x210000
    mov sp, x0
    ldr x20, =0x200000
    ldr x0, =0xa0000000     // flags N and C, EL0
    msr SPSR_EL1, x0
    adr x0, program
    msr ELR_EL1, x0
    ldr x0, =0x1230
    msr SP_EL0, x0
    eret
.macro far_away
    .rept 40
    nop
    .endr
.endm
program:
    svc #7
    far_away
    adr x9, program
    str x9, [x9]            // no permission
    far_away
    ldr x10, =0x40000678
    ldr w11, [x10]          // nothing there
    ldr w11, [x10, #4]      // soon after
    b 1f                    // (whole blocks are counted)
1:
    far_away
    add x10, x10, #0x18
    add sp, sp, #0x40
    blr x10                 // nothing there
    far_away
    svc #0xabcd
    brk #5
    far_away
    mov x12, #100
1:  svc #1
    subs x12, x12, #1
    b.ne 1b
    svc #99
    .ltorg
    .align 11
vectors:
    .rept 8                 // current level
    b .
    .align 7
    .endr
    mrs x1, ESR_EL1         // lower level: synchronous
    mrs x2, FAR_EL1
    mrs x3, ELR_EL1
    mrs x4, SPSR_EL1
    stp x1, x2, [x20], #16
    stp x3, x4, [x20], #16
    mov x5, sp
    mrs x6, SP_EL0
    stp x5, x6, [x20], #16
    lsr x7, x1, #26
    cmp x7, #0x15
    b.eq call
    cmp x7, #0x20
    b.eq jump
    add x3, x3, #4
    msr ELR_EL1, x3
    eret
jump:
    msr ELR_EL1, x30
    eret
call:
    and x7, x1, #0xffff
    cmp x7, #99
    b.eq end
    eret
end:
    b .
    .align 7
