@ A supervisor call, an undefined instruction and a prefetch abort reach their handlers (r4, r5, r6).
.include "common.inc"
.global _start
_start:
    leave_hyp
    begin
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    cps #0x1b
    mov sp, #0x7000
    cps #0x13
    mov r4, #0
    mov r5, #0
    push {lr}
    svc #7
    svc #7
    udf #1
    add r5, r5, #16
1:  wfe                         @ the first one ends at once: an exception has returned
    b 1b
svc_handler:
    add r4, r4, #1
    movs pc, lr
udf_handler:
    add r5, r5, #1
    movs pc, lr
    .ltorg
    .align 5
vectors:
    b .
    b udf_handler
    b svc_handler
    b .
    b .
    b .
    b .
    b .
