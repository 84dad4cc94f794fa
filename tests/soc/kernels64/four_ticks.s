// Four cores that compute, poll their counters and sleep, while a timer interrupts each at its own period; x7 counts the
// interrupts. Core 0 stays in EL2 and takes them there, core 1 is in EL1 and takes them in EL2, core 2 takes them in EL1,
// with both of its stack pointers, core 3 in EL1 while its program is in EL0.
.global _start
_start:
    mrs x5, mpidr_el1
    and x5, x5, #3
    cbnz x5, 1f
    adr x2, _start
    mov x1, #0xe0
    str x2, [x1]
    str x2, [x1, #8]
    str x2, [x1, #16]
    dsb sy
    sev
1:  adr x1, vectors
    msr vbar_el1, x1
    msr vbar_el2, x1
    ldr x1, =0x30d50000         // SCTLR_EL1: EL0 may wait by wfi and wfe
    msr sctlr_el1, x1
    mov x1, #3
    msr cntkctl_el1, x1
    ldr x1, =stacks
    add x1, x1, x5, lsl #9
    add x1, x1, #0x200
    mov sp, x1
    sub x1, x1, #0x80
    msr sp_el1, x1
    sub x1, x1, #0x80
    msr sp_el0, x1
    mov x1, #1 << 31
    orr x2, x1, #1 << 4         // IMO
    cmp x5, #2
    csel x1, x2, x1, lo
    msr hcr_el2, x1
    ldr x9, =0x40000040
    mov w1, #8                  // the timer of CNTV_*
    str w1, [x9, x5, lsl #2]
    msr cntvoff_el2, xzr
    add x11, x5, x5, lsl #4
    add x11, x11, #1, lsl #12
    sub x11, x11, #2200         // counts from one interrupt to the next: 1896, 1913, 1930, 1947
    msr cntv_tval_el0, x11
    mov x1, #1
    msr cntv_ctl_el0, x1
    mov x4, #0
    adr x1, levels
    ldr w1, [x1, x5, lsl #2]
    msr spsr_el2, x1
    adr x1, 2f
    msr elr_el2, x1
    eret
levels:
    .word 0x349, 0x345, 0x345, 0x340
2:  add x4, x4, #1              // computes for a while,
    and x1, x4, #0x3f
    add x1, x1, x5, lsl #4
    lsl x1, x1, #6
3:  subs x1, x1, #1
    b.ne 3b
    mrs x2, cntvct_el0          // then waits for 1100 counts
    add x2, x2, #1100
4:  mrs x0, cntvct_el0
    subs x0, x0, x2
    b.mi 4b
    cmp x5, #2
    b.ne 5f
    and x1, x4, #1
    cbz x1, 6f
    msr spsel, #0
    b 5f
6:  msr spsel, #1
5:  tst x4, #7
    b.ne 2b
    tst x4, #8
    b.ne 7f
    wfe                         // and now and then for the next interrupt, in both ways
    b 2b
7:  wfi
    b 2b
irq:
    stp x0, x1, [sp, #-16]!
    add x0, x9, #0x20
    ldr w1, [x0, x5, lsl #2]
    msr cntv_tval_el0, x11
    add x7, x7, #1
    tst x7, #3
    b.ne 8f
    sev
8:  ldp x0, x1, [sp], #16
    eret
    .ltorg
    .align 11
vectors:
    .rept 16
    .align 7
    b irq
    .endr
    .align 8
stacks:
    .space 0x800
