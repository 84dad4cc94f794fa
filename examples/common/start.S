/* Entry of every 32-bit example: core 0 alone, SVC mode, floating point on, bss cleared, then main().
 *
 * The firmware enters at 0x8000 in SVC or (ARMv7, newer) HYP mode; it parks the other cores itself, but
 * some boot paths let all four in, so they are parked here again (r4: the core's number). Data caches and
 * MMU stay off: what the CPU writes is in memory when the GPU looks. The instruction cache may be on,
 * nothing rewrites code. ARMv6 boards have one core and no HYP mode. A program with interrupts has its own
 * irq_entry (and its own stack for it), one with several cores may have its own park.
 */

#include "core.inc"

        .section .text.start, "ax"
        .global _start
        .global vectors
        .weak   irq_entry
        .weak   park
_start:
#if __ARM_ARCH >= 7
        mrc     p15, 0, r4, c0, c0, 5           @ MPIDR: which core is this?
        ands    r4, r4, #3
        bne     park

        leave_hyp
#endif
        cpsid   if
        ldr     sp, =_start                     @ stack grows down from the image
        prepare_core

        ldr     r4, =__bss_start
        ldr     r5, =__bss_end
        mov     r6, #0
clear:
        cmp     r4, r5
        strlo   r6, [r4], #4
        blo     clear

        bl      main
        bl      halt

#if __ARM_ARCH >= 7
park:
        wfe
        b       park
#endif

        .balign 32
vectors:
        b       _start
        b       undefined_instruction
        b       unexpected
        b       prefetch_abort
        b       data_abort
        b       unexpected
        b       irq_entry
        b       unexpected

undefined_instruction:
        sub     r1, lr, #4
        ldr     r0, =text_undefined
        b       trapped
prefetch_abort:
        sub     r1, lr, #4
        ldr     r0, =text_prefetch
        b       trapped
data_abort:
        sub     r1, lr, #8
        ldr     r0, =text_data
        b       trapped
irq_entry:
unexpected:
        mov     r1, lr
        ldr     r0, =text_unexpected
trapped:
        ldr     sp, =_start
        b       panic_at

        .section .rodata
text_undefined:
        .asciz  "undefined instruction"
text_prefetch:
        .asciz  "prefetch abort"
text_data:
        .asciz  "data abort"
text_unexpected:
        .asciz  "unexpected exception"
