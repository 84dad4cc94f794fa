// EL2: CNTVOFF sets the virtual count back; the timer of EL2 is waited for. x4: CNTPCT - CNTVCT, x5: its control
// register then, x6: ticks waited, x7: CNTVOFF as read.
.global _start
_start:
    mov x0, #0x3000
    movk x0, #5, lsl #32
    msr cntvoff_el2, x0
    mrs x7, cntvoff_el2
    mrs x1, cntpct_el0
    mrs x2, cntvct_el0
    sub x4, x1, x2
    mov x0, #20000
    msr cnthp_tval_el2, x0
    mov x0, #1
    msr cnthp_ctl_el2, x0
1:  mrs x5, cnthp_ctl_el2
    tbz x5, #2, 1b
    mrs x6, cntpct_el0
    sub x6, x6, x1
    b .
