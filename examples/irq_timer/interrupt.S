/* What a C function cannot do: come from and go back to an interrupted program. */

        .text

/* The vector table in start.S leads here, in IRQ mode, lr 4 bytes beyond the place to go back to. Only the
 * registers a C function may change are kept; it uses no floating point.
 */
        .global irq_entry
irq_entry:
        sub     lr, lr, #4
        push    {r0-r3, r12, lr}
        bl      interrupt
        ldm     sp!, {r0-r3, r12, pc}^          @ back, and CPSR as it was

/* void interrupts_on(void): IRQ mode gets its own stack, then interrupts may come. */
        .global interrupts_on
interrupts_on:
        cps     #0x12                           @ IRQ mode (interrupts stay masked)
        ldr     sp, =irq_stack_end
        cps     #0x13                           @ back to SVC
        cpsie   i
        bx      lr

        .section .noinit, "aw", %nobits
        .balign 8
        .space  1024
irq_stack_end:
