# A naan: texture times light, blended over what the tile holds.
#
# Varyings: s, t, light red, green, blue (already times opacity), opacity.
# The texture has premultiplied alpha, so:  result = texel * light + tile * (1 - alpha * opacity)

.global fragment

fragment:
        nop                     ; fmul r0, vary, ra15   # s
        fadd r0, r0, r5         ; fmul r1, vary, ra15   # t
        fadd t0t, r1, r5        ; fmul r2, vary, ra15   # red
        fadd r2, r2, r5         ; mov  t0s, r0          # the lookup is on its way
        nop                     ; fmul r3, vary, ra15   # green
        fadd r3, r3, r5         ; mov  r1.8a, r2
        nop                     ; fmul r0, vary, ra15   # blue
        fadd r0, r0, r5         ; mov  r1.8b, r3
        nop                     ; fmul r2, vary, ra15   # opacity
        fadd r2, r2, r5         ; mov  r1.8c, r0
        nop                     ; mov  r1.8d, r2        ; ldtmu0
        nop                     ; v8muld ra0, r4, r1
        nop                     ; nop                   ; sbwait
        not  r1, ra0.8dr        ; nop                   ; loadc
        nop                     ; v8muld r1, r4, r1
        v8adds tlbc, ra0, r1    ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
