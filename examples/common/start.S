/* Entry of the 32-bit examples: core 0 alone, SVC mode, floating point on, bss cleared, then main().
 *
 * The firmware enters at 0x8000 in SVC or (ARMv7, newer) HYP mode; it parks the other cores itself,
 * but some boot paths let all four in, so they are parked here again. ARMv6 boards have one core and
 * no HYP mode. Data caches and MMU stay off: what the CPU writes is in memory when the GPU looks. The
 * instruction cache may be on, nothing rewrites code. A program with interrupts has its own irq_entry
 * (and its own stack for it).
 */

#if __ARM_ARCH >= 7
        .arch_extension virt
#endif
        .macro  instruction_barrier             @ changes r4
#if __ARM_ARCH >= 7
        isb
#else
        mov     r4, #0
        mcr     p15, 0, r4, c7, c5, 4
#endif
        .endm

        .section .text.start, "ax"
        .global _start
        .weak   irq_entry
_start:
#if __ARM_ARCH >= 7
        mrc     p15, 0, r4, c0, c0, 5           @ MPIDR: which core is this?
        ands    r4, r4, #3
        bne     park

        mrs     r4, cpsr
        and     r5, r4, #0x1f
        cmp     r5, #0x1a                       @ HYP: leave it for SVC, interrupts masked
        bne     in_svc
        bic     r4, r4, #0x1f
        orr     r4, r4, #0xd3
        msr     spsr_hyp, r4
        adr     r5, in_svc
        msr     elr_hyp, r5
        eret
#endif

in_svc:
        cpsid   if
        ldr     sp, =_start                     @ stack grows down from the image
        ldr     r4, =vectors
        mcr     p15, 0, r4, c12, c0, 0          @ VBAR

        mrc     p15, 0, r4, c1, c0, 2           @ CPACR: allow VFP
        orr     r4, r4, #0x00f00000
        mcr     p15, 0, r4, c1, c0, 2
        instruction_barrier
        mov     r4, #0x40000000
        vmsr    fpexc, r4
#if __ARM_ARCH == 6
        mov     r4, #0x03000000                 @ FPSCR: tiny numbers are 0, no software helps
        vmsr    fpscr, r4
#endif

        mrc     p15, 0, r4, c1, c0, 0           @ SCTLR: instruction cache, branch prediction
        orr     r4, r4, #0x1800
        mcr     p15, 0, r4, c1, c0, 0
        instruction_barrier

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
