/* Entry of the AArch64 examples: core 0 alone, EL1, floating point on, bss cleared, then main().
 *
 * The firmware enters at 0x80000 in EL2; the other cores wait in its stub, and again here should a
 * boot path let them in. Data caches and MMU stay off: what the CPU writes is in memory when the GPU
 * looks.
 */

        .section .text.start, "ax"
        .global _start
_start:
        mrs     x4, mpidr_el1                   // which core is this?
        tst     x4, #3
        b.ne    park

        mrs     x4, CurrentEL
        cmp     x4, #2 << 2
        b.ne    in_el1
        mov     x4, #1 << 31                    // HCR_EL2: EL1 is AArch64, nothing is trapped
        msr     hcr_el2, x4
        mov     x4, #0x33ff                     // CPTR_EL2: floating point is not trapped
        msr     cptr_el2, x4
        msr     hstr_el2, xzr
        mov     x4, #3                          // CNTHCTL_EL2: EL1 may read the physical counter
        msr     cnthctl_el2, x4
        msr     cntvoff_el2, xzr
        ldr     x4, =0x30d00800                 // SCTLR_EL1: MMU and caches off, reserved ones set
        msr     sctlr_el1, x4
        mov     x4, #0x3c5                      // SPSR_EL2: EL1 with its own stack, all masked
        msr     spsr_el2, x4
        adr     x4, in_el1
        msr     elr_el2, x4
        eret

in_el1:
        msr     daifset, #15
        ldr     x4, =_start                     // stack grows down from the image
        mov     sp, x4
        ldr     x4, =vectors
        msr     vbar_el1, x4
        mov     x4, #3 << 20                    // CPACR_EL1: allow floating point
        msr     cpacr_el1, x4
        mrs     x4, sctlr_el1                   // instruction cache
        orr     x4, x4, #1 << 12
        msr     sctlr_el1, x4
        isb

        ldr     x4, =__bss_start
        ldr     x5, =__bss_end
clear:
        cmp     x4, x5
        b.hs    cleared
        str     xzr, [x4], #8
        b       clear
cleared:
        bl      main
        bl      halt

park:
        wfe
        b       park

/* Sixteen entries of 128 bytes: synchronous, IRQ, FIQ, SError from four states; all unexpected. */
        .balign 2048
vectors:
        .rept   4
        .balign 128
        ldr     x0, =text_synchronous
        b       trapped
        .balign 128
        ldr     x0, =text_irq
        b       trapped
        .balign 128
        ldr     x0, =text_fiq
        b       trapped
        .balign 128
        ldr     x0, =text_system_error
        b       trapped
        .endr
trapped:
        ldr     x4, =_start
        mov     sp, x4
        mrs     x1, elr_el1
        b       panic_at

        .section .rodata
text_synchronous:
        .asciz  "synchronous exception"
text_irq:
        .asciz  "unexpected IRQ"
text_fiq:
        .asciz  "unexpected FIQ"
text_system_error:
        .asciz  "system error"
