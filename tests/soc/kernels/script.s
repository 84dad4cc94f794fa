@ Does what a script at 0x100000 says: three words a step, what (1 store, 2 load, 3 wait until one of
@ the bits is set, 4 sleep, 0 end), address, value. Loads go to r9. The functions have names for the
@ tests.
.include "common.inc"
.global _start, next, put, get, wait, stop
_start:
    begin
    ldr r4, =0x100000
next:
    ldmia r4!, {r0, r1, r2}
    cmp r0, #2
    blo 1f
    beq get
    cmp r0, #3
    beq wait
    .ifdef OLD
    mcr p15, 0, r0, c7, c0, 4   @ ARM1176: wait for interrupt
    .else
    wfi
    .endif
    b next
1:  cmp r0, #1
    beq put
stop:
    ready
put:
    str r2, [r1]
    b next
get:
    ldr r9, [r1]
    b next
wait:
    ldr r9, [r1]
    tst r9, r2
    beq wait
    b next
