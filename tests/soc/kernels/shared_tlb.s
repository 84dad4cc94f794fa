@ Core 1 reads 0x300000 twice; in between core 0 moves the section and invalidates it on all cores.
@ What was read the second time is at 0x500004. A test replaces the invalidation by core 0's own.
.include "common.inc"
.arch_extension virt
.arch_extension mp
.global _start
.equ TABLE, 0x4000
.equ STEP, 0x500000
_start:
    leave_hyp
    mrc p15, 0, r9, c0, c0, 5
    ands r9, r9, #3
    bne second
    mov r0, #TABLE
    mov r1, #0
    ldr r2, =0x1c0e             @ write-back sections
1:  orr r3, r2, r1, lsl #20
    str r3, [r0, r1, lsl #2]
    add r1, r1, #1
    cmp r1, #4096
    blo 1b
    ldr r2, =0x40000c06         @ the local peripherals
    add r3, r0, #0x1000
    str r2, [r3]
    mov r2, #0x33
    mov r3, #0x300000
    str r2, [r3]
    mov r2, #0x44
    mov r3, #0x400000
    str r2, [r3]
    dsb
    bl mmu_on
    ldr r0, =0x4000009c         @ core 1 starts
    ldr r1, =_start
    str r1, [r0]
    sev
    mov r8, #STEP
    mov r4, #1
    bl wait
    ldr r0, =TABLE + 12
    ldr r1, =0x401c0e
    str r1, [r0]
    dsb
    mov r1, #0x300000
    mcr p15, 0, r1, c8, c3, 1   @ TLBIMVAIS
    dsb
    isb
    mov r0, #2
    str r0, [r8]
    mov r4, #3
    bl wait
2:  wfi
    b 2b
second:
    bl mmu_on
    mov r8, #STEP
    mov r7, #0x300000
    ldr r6, [r7]
    mov r0, #1
    str r0, [r8]
    mov r4, #2
    bl wait
    ldr r5, [r7]
    str r5, [r8, #4]
    mov r0, #3
    str r0, [r8]
3:  wfi
    b 3b
wait:
    ldr r0, [r8]
    cmp r0, r4
    bne wait
    bx lr
mmu_on:
    mov r0, #TABLE
    mcr p15, 0, r0, c2, c0, 0
    mov r1, #0
    mcr p15, 0, r1, c2, c0, 2
    mvn r1, #0
    mcr p15, 0, r1, c3, c0, 0
    mcr p15, 0, r0, c8, c7, 0
    dsb
    isb
    mrc p15, 0, r1, c1, c0, 0
    orr r1, r1, #5
    mcr p15, 0, r1, c1, c0, 0
    isb
    bx lr
