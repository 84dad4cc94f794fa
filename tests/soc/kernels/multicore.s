@ Four cores add under LDREX/STREX; each adds 1000 to the word at 0x6000. Core 0 sleeps in wfe until they are done.
.include "common.inc"
.arch_extension mp
.global _start
_start:
    mov sp, #0x8000
    ldr r4, =0x6000
    mov r0, #0
    str r0, [r4]
    str r0, [r4, #4]
    dmb
    ldr r1, =0x4000009c
    adr r2, secondary
    str r2, [r1]
    str r2, [r1, #0x10]
    str r2, [r1, #0x20]
    dsb
    sev
    bl work
1:  wfe
    ldr r0, [r4, #4]
    cmp r0, #4
    blo 1b
    ldr r10, [r4]
    ready
secondary:
    mrc p15, 0, r0, c0, c0, 5
    and r9, r0, #3
    ldr r4, =0x6000
    bl work
2:  wfe
    b 2b
work:
    ldr r5, =1000
3:  ldrex r0, [r4]
    add r0, r0, #1
    strex r1, r0, [r4]
    cmp r1, #0
    bne 3b
    subs r5, r5, #1
    bne 3b
    add r6, r4, #4
4:  ldrex r0, [r6]
    add r0, r0, #1
    strex r1, r0, [r6]
    cmp r1, #0
    bne 4b
    dmb
    sev
    bx lr
