# GL mode: the QPUs turn, project and light the vertices.
#
# Attributes: rows 0-2 of the VPM are x, y, z; for the vertex shader 3-5 are the normal.
# Uniforms: the matrix rows for w, x, y, z (four numbers each: times x, y, z, and to add), half width
# and half height in 1/16 pixel; for the vertex shader also the direction of the light, the ambient
# light, the colour.

.set read_rows_3, 0x301a00      # VPM read setup: 3 rows, horizontal, 32 bit, from row 0
.set read_rows_6, 0x601a00
.set write_rows, 0x1a00         # VPM write setup: rows from 0 on

.global coordinate
.global vertex
.global fragment

# For the binner: clip coordinates, then what the vertex shader gives.
coordinate:
        ldi  vr_setup, read_rows_3
        ldi  vw_setup, write_rows
        nop
        nop
        mov  ra0, vpm                                   # x
        mov  ra1, vpm                                   # y
        mov  ra2, vpm                                   # z

        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1
        fadd r3, r0, unif                               # Wc
        mov  recip, r3
        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1         ; fmul r2, r3, r4       # one Newton step makes 1/Wc exact enough:
        fadd ra4, r0, unif                              # Xc
        fsub r2, 2.0, r2
        nop                     ; fmul r2, r2, r4       # 1/Wc = e (2 - Wc e)
        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1
        fadd ra5, r0, unif                              # Yc
        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1
        fadd ra6, r0, unif                              # Zc

        mov  vpm, ra4
        mov  vpm, ra5
        mov  vpm, ra6
        mov  vpm, r3
        nop                     ; fmul r0, ra4, r2
        nop                     ; fmul r0, r0, unif
        ftoi ra3.16a, r0        ; fmul r1, ra5, r2
        nop                     ; fmul r1, r1, unif
        ftoi ra3.16b, r1        ; fmul r0, ra6, r2
        nop                     ; fmul r0, r0, 0.5
        mov  vpm, ra3                                   # Ys:Xs
        fadd vpm, r0, 0.5                               # Zs
        mov  vpm, r2                                    # 1/Wc
        nop                     ; nop                   ; thrend
        nop
        nop

# For primitive setup: screen position by the same steps, and three varyings.
vertex:
        ldi  vr_setup, read_rows_6
        ldi  vw_setup, write_rows
        nop
        nop
        mov  ra0, vpm                                   # x
        mov  ra1, vpm                                   # y
        mov  ra2, vpm                                   # z
        mov  ra7, vpm                                   # normal x
        mov  ra8, vpm                                   # normal y
        mov  ra9, vpm                                   # normal z

        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1
        fadd r3, r0, unif                               # Wc
        mov  recip, r3
        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1         ; fmul r2, r3, r4
        fadd ra4, r0, unif                              # Xc
        fsub r2, 2.0, r2
        nop                     ; fmul r2, r2, r4       # 1/Wc
        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1
        fadd ra5, r0, unif                              # Yc
        nop                     ; fmul r0, ra0, unif
        nop                     ; fmul r1, ra1, unif
        fadd r0, r0, r1         ; fmul r1, ra2, unif
        fadd r0, r0, r1
        fadd ra6, r0, unif                              # Zc

        nop                     ; fmul r0, ra4, r2
        nop                     ; fmul r0, r0, unif
        ftoi ra3.16a, r0        ; fmul r1, ra5, r2
        nop                     ; fmul r1, r1, unif
        ftoi ra3.16b, r1        ; fmul r0, ra6, r2
        nop                     ; fmul r0, r0, 0.5
        mov  vpm, ra3                                   # Ys:Xs
        fadd vpm, r0, 0.5                               # Zs
        mov  vpm, r2                                    # 1/Wc

        nop                     ; fmul r0, ra7, unif    # normal times light
        nop                     ; fmul r1, ra8, unif
        fadd r0, r0, r1         ; fmul r1, ra9, unif
        fadd r0, r0, r1
        fmax r0, r0, 0                                  # none from behind
        fadd r0, r0, unif                               # and some from everywhere
        nop                     ; fmul vpm, r0, unif    # red
        nop                     ; fmul vpm, r0, unif    # green
        nop                     ; fmul vpm, r0, unif    # blue
        nop                     ; nop                   ; thrend
        nop
        nop

# Depth (rb15) first: it takes hidden pixels out of what the colour is written to.
fragment:
        nop                     ; fmul r0, vary, ra15
        fadd r0, r0, r5         ; fmul r1, vary, ra15
        fadd r1, r1, r5         ; fmul r2, vary, ra15   ; sbwait
        fadd r2, r2, r5         ; mov  r3.8a, r0
        mov  tlbz, rb15         ; mov  r3.8b, r1
        nop                     ; mov  r3.8c, r2
        nop                     ; mov  r3.8d, 1.0
        mov  tlbc, r3           ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
