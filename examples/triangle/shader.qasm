# Fragment shader: three varyings are red, green and blue.
#
# Reading a varying gives its plane value; times W (ra15 at the start), plus the constant that the
# read leaves in r5 for the next instruction, it is the perspective-correct value.

.global fragment

fragment:
        nop                     ; fmul r0, vary, ra15
        fadd r0, r0, r5         ; fmul r1, vary, ra15
        fadd r1, r1, r5         ; fmul r2, vary, ra15
        fadd r2, r2, r5         ; mov  r3.8a, r0        # 0.0..1.0 becomes a byte
        nop                     ; mov  r3.8b, r1
        nop                     ; mov  r3.8c, r2
        nop                     ; mov  r3.8d, 1.0
        nop                     ; nop                   ; sbwait
        mov  tlbc, r3           ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
