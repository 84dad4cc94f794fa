// Four cores in wfe, each interrupted by its own timer 2000 times a second; after each interrupt a core takes a lock that it
// waits for in wfe, and counts in [shared]. x20 counts the interrupts of a core; each ends with an event for all of them.
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
1:  adr x1, table               // the cores' monitors watch over cached memory only
    msr ttbr0_el2, x1
    mov x1, #0xff
    msr mair_el2, x1
    ldr x1, =0x80803520
    msr tcr_el2, x1
    isb
    mrs x1, sctlr_el2
    orr x1, x1, #1
    orr x1, x1, #4
    msr sctlr_el2, x1
    isb
    ldr x1, =stacks
    add x2, x5, #1
    add x1, x1, x2, lsl #8
    mov sp, x1
    adr x1, vectors
    msr vbar_el2, x1
    mov x1, #1 << 4             // IMO
    orr x1, x1, #1 << 31
    msr hcr_el2, x1
    mov x20, #0
    mov x21, #0
    mov x7, #0x40000000
    add x8, x7, #0x40
    mov w1, #2                  // the timer of CNTP_*
    str w1, [x8, x5, lsl #2]
    mrs x9, cntfrq_el0
    mov x1, #2000
    udiv x9, x9, x1
    lsr x1, x9, #2
    madd x1, x1, x5, x9         // one after the other
    msr cntp_tval_el0, x1
    mov x1, #1
    msr cntp_ctl_el0, x1
    msr daifclr, #2
    adr x10, lock
    adr x11, shared
idle:
    wfe                         // what others send wakes it, too
    cmp x20, x21
    b.eq idle
    mov x21, x20
    mov w2, #1
    sevl
2:  wfe
3:  ldaxr w3, [x10]
    cbnz w3, 2b
    stxr w4, w2, [x10]
    cbnz w4, 3b
    ldr x3, [x11]
    add x3, x3, #1
    str x3, [x11]
    stlr wzr, [x10]
    b idle
irq:
    stp x0, x1, [sp, #-16]!
    add x0, x7, #0x60
    ldr w1, [x0, x5, lsl #2]    // the source
    mrs x0, cntp_tval_el0
    add x0, x0, x9
    msr cntp_tval_el0, x0
    add x20, x20, #1
    sev
    ldp x0, x1, [sp], #16
    eret
    .ltorg
    .align 11
vectors:
    .rept 5
    .align 7
    b .
    .endr
    .align 7
    b irq
    .rept 10
    .align 7
    b .
    .endr
    .align 12
table:
    .quad 0x741, 0x40000445, 0, 0   // a GiB of normal memory, and the local block
lock:
    .quad 0
shared:
    .quad 0
    .align 8
stacks:
    .space 0x400
