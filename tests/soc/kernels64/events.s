// Core 1 waits in wfe for a word that core 0 writes 100 us later; then x20 of core 1 is 77. A test chooses bits of the mode:
// 0 core 0 sends an event after the word, 1 core 1 looks by load-exclusive, 2 its timer sends events, 3 core 0 sends no
// event after core 1's address, 4 core 1 begins by sevl.
.global _start
_start:
    b 1f
mode:
    .word 0
1:  ldr w28, mode
    mov x1, #0xe0
    adr x2, second
    str x2, [x1]
    dsb sy
    tbnz w28, #3, 2f
    sev
2:  bl pause
    adr x1, flag
    mov w2, #1
    str w2, [x1]
    dsb sy
    tbz w28, #0, 3f
    sev
3:  bl pause
    b .
pause:
    mov x3, #25000
1:  subs x3, x3, #1
    b.ne 1b
    ret
second:
    ldr w28, mode
    adr x1, flag
    mov x21, #0
    tbz w28, #2, 1f
    mov x4, #0x84               // EVNTEN, bit 8 of the counter
    msr cntkctl_el1, x4
1:  tbz w28, #1, 5f             // a monitor watches over cached memory only
    adr x4, table
    msr ttbr0_el2, x4
    mov x4, #0xff
    msr mair_el2, x4
    ldr x4, =0x80803520
    msr tcr_el2, x4
    isb
    mrs x4, sctlr_el2
    orr x4, x4, #1
    orr x4, x4, #4
    msr sctlr_el2, x4
    isb
5:  tbz w28, #4, 2f
    sevl
2:  add x21, x21, #1
    wfe
    tbnz w28, #1, 3f
    ldr w2, [x1]
    cbz w2, 2b
    b 4f
3:  ldxr w2, [x1]
    cbz w2, 2b
4:  mov x20, #77
    b .
    .ltorg
    .align 6
table:
    .quad 0x741, 0, 0, 0        // the first GiB as normal memory
flag:
    .word 0
