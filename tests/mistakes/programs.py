"""QPU programs with one mistake each, in place of those of the examples."""

WRITE_NOTHING = """
        nop
        nop
        nop                     ; nop                   ; sbwait
        nop                     ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
WRITE_DEPTH = """
        ldi  r0, 0x800000
        nop
        nop                     ; nop                   ; sbwait
        mov  tlbz, r0
        nop                     ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
WRITE_CLEAR_COLOUR = """
        ldi  r0, 0xff401a10
        nop
        nop                     ; nop                   ; sbwait
        mov  tlbc, r0           ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
DISCARD = """
        ldi  r0, 0xff00ffff
        mov.setf r1, 1
        nop                     ; nop                   ; sbwait
        mov.zs tlbc, r0
        nop                     ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
BLEND_NOTHING = """
        nop
        nop
        nop                     ; nop                   ; sbwait
        nop                     ; nop                   ; loadc
        mov  tlbc, r4
        nop                     ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
TEST_DEPTH = """
        ldi  r0, 0xff00ffff
        nop
        nop                     ; nop                   ; sbwait
        mov  tlbz, rb15
        mov  tlbc, r0           ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
REFUSE_BY_STENCIL = """
        ldi  r0, 0xff00ffff
        ldi  r1, 0xc000ffff
        nop                     ; nop                   ; sbwait
        mov  stencil, r1
        mov  tlbz, rb15
        mov  tlbc, r0           ; nop                   ; thrend
        nop
        nop                     ; nop                   ; sbdone
"""
NO_END = """
        ldi  r0, 0xff00ffff
        nop
        nop                     ; nop                   ; sbwait
        mov  tlbc, r0
        nop
        nop
"""
COORDINATE = """
.set read_rows_3, 0x301a00
.set write_rows, 0x1a00
        ldi  vr_setup, read_rows_3
        ldi  vw_setup, write_rows
        ldi  r3, WC
        nop
        mov  ra0, vpm
        mov  ra1, vpm
        mov  ra2, vpm
        mov  vpm, ra0
        mov  vpm, ra1
        mov  vpm, ra2
        mov  vpm, r3
        nop                     ; fmul r0, ra0, unif
        ftoi ra3.16a, r0        ; fmul r1, ra1, unif
        ftoi ra3.16b, r1
        nop                     ; fmul r2, ra2, 0.5
        mov  vpm, ra3
        fadd vpm, r2, 0.5
        mov  vpm, 1.0
        nop                     ; nop                   ; thrend
        nop
        nop
"""
"""The coordinate shader of examples/vertex_shader with another Wc, for which WC stands."""
NO_VPM = """
        nop
        nop
        nop                     ; nop                   ; thrend
        nop
        nop
"""
"""A coordinate shader that writes nothing."""
