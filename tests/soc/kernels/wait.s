@ Waits 100 ms by polling the system timer, twice; leaves the times in r4 and r5.
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =P + 0x3000
    ldr r1, =100000
    ldr r4, [r0, #4]
1:  ldr r2, [r0, #4]
    sub r3, r2, r4
    cmp r3, r1
    blo 1b
    ldr r5, [r0, #4]
2:  ldr r2, [r0, #4]
    sub r3, r2, r5
    cmp r3, r1
    blo 2b
    mov r6, r2
    ready
