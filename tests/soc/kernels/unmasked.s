@ Uses the framebuffer's bus address as it comes, and reads the V3D before it has power (r9).
.include "common.inc"
.global _start
_start:
    begin
    ldr r0, =P + 0xc00000
    ldr r9, [r0]
    ldr r0, =0xfc100000
    mov r1, #1
    str r1, [r0]
    ldr r8, [r0]
    ldr r0, =0x50000000
    ldr r7, [r0]
    ldr r0, =P + 0x208000
    ldr r6, [r0]
    ready
