/* How a further core comes to C, and the lock that all of them use. */

#include "core.inc"

        .text

/* The firmware's stub found this address in the core's mailbox 3. Like core 0 in start.S, with a stack of
 * its own; and the MMU is on before the first word goes there, so that no cache knows another one.
 */
        .global core_entry
core_entry:
        leave_hyp
        cpsid   if
        mrc     p15, 0, r0, c0, c0, 5           @ MPIDR: the core's number
        and     r0, r0, #3
        ldr     sp, =stacks                     @ 4 KiB each, growing down
        add     sp, sp, r0, lsl #12
        mov     r6, r0
        prepare_core
        bl      memory_map_use
        mov     r0, r6
        bl      core_main
        bl      halt

/* Instead of the one in start.S, for boot paths that let all cores in at once: what the stub does. */
        .global park
park:
        ldr     r5, =0x400000cc                 @ mailbox 3 of core 0; a core has four
        add     r5, r5, r4, lsl #4
look:
        wfe
        ldr     r6, [r5]
        cmp     r6, #0
        beq     look
        str     r6, [r5]                        @ ones written here clear it
        bx      r6

/* LDREX marks the word as watched by this core; STREX writes only if no other core has written
 * since, and says so (0). Both need normal, shareable, cacheable memory: without MMU and caches these boards
 * have nothing that watches, and STREX may fail for ever.
 */
        .global lock
lock:
        mov     r2, #1
again:
        ldrex   r1, [r0]
        cmp     r1, #0
        wfene                                   @ taken: sleep until an unlock
        bne     again
        strex   r1, r2, [r0]
        cmp     r1, #0
        bne     again
        dmb                                     @ nothing inside happens before the lock is ours
        bx      lr

        .global unlock
unlock:
        dmb                                     @ everything inside is seen before the lock is free
        mov     r1, #0
        str     r1, [r0]
        dsb
        sev
        bx      lr

        .section .noinit, "aw", %nobits
        .balign 16
stacks: .space  3 * 4096                        @ core 1 begins at the end of the first
