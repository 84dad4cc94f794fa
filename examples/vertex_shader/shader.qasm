# GL mode: the same triangle, but the GPU places the corners itself.
#
# The VCD has put each vertex's attributes into a column of the VPM: rows 0-2 x, y, z and, for the
# vertex shader only, row 3 the colour as four bytes. Uniforms: half width and half height in 1/16
# pixel. W is 1 here, so the division by it is left out.

.set read_rows_3, 0x301a00      # VPM read setup: 3 rows, horizontal, 32 bit, from row 0
.set read_rows_4, 0x401a00
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
        mov  vpm, ra0                                   # Xc
        mov  vpm, ra1                                   # Yc
        mov  vpm, ra2                                   # Zc
        mov  vpm, 1.0                                   # Wc
        nop                     ; fmul r0, ra0, unif
        ftoi ra3.16a, r0        ; fmul r1, ra1, unif
        ftoi ra3.16b, r1
        nop                     ; fmul r2, ra2, 0.5
        mov  vpm, ra3                                   # Ys:Xs
        fadd vpm, r2, 0.5                               # Zs
        mov  vpm, 1.0                                   # 1/Wc
        nop                     ; nop                   ; thrend
        nop
        nop

# For primitive setup: screen position and three varyings.
vertex:
        ldi  vr_setup, read_rows_4
        ldi  vw_setup, write_rows
        nop
        nop
        mov  ra0, vpm                                   # x
        mov  ra1, vpm                                   # y
        mov  ra2, vpm                                   # z
        mov  ra4, vpm                                   # red, green, blue, alpha
        nop                     ; fmul r0, ra0, unif
        ftoi ra3.16a, r0        ; fmul r1, ra1, unif
        ftoi ra3.16b, r1
        nop                     ; fmul r2, ra2, 0.5
        mov  vpm, ra3                                   # Ys:Xs
        fadd vpm, r2, 0.5                               # Zs
        mov  vpm, 1.0                                   # 1/Wc
        fmax vpm, ra4.8a, ra4.8a                        # red: byte to 0.0..1.0
        fmax vpm, ra4.8b, ra4.8b                        # green
        fmax vpm, ra4.8c, ra4.8c                        # blue
        nop                     ; nop                   ; thrend
        nop
        nop

fragment:
        nop                     ; fmul r0, vary, ra15
        fadd r0, r0, r5         ; fmul r1, vary, ra15
        fadd r1, r1, r5         ; fmul r2, vary, ra15
        fadd r2, r2, r5         ; mov  r3.8a, r0
        nop                     ; mov  r3.8b, r1
        nop                     ; mov  r3.8c, r2
        nop                     ; mov  r3.8d, 1.0
        nop                     ; nop                   ; sbwait
        mov  tlbc, r3           ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
