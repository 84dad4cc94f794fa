# y = a * x + y, for arrays of whole vectors. Each QPU takes every qpus-th vector of 16 floats.
#
# kernel saxpy(x: float[], inout y: float[], a: float)
# uniforms x + 64*qpu, y + 64*qpu, a, 64*qpus, (len(x) // 16 + qpus - 1 - qpu) // qpus

.set write_rows, 0x1a00         # VPM write setup: whole rows
.set store_row, 0x80904000      # DMA store: one row of 16 words

.global saxpy
saxpy:
        mov  ra0, unif                  # x
        mov  ra1, unif                  # y
        mov  ra2, unif                  # a
        mov  rb0, unif                  # bytes from vector to vector
        mov  ra3, unif                  # vectors
        ldi  r1, write_rows
        add  rb1, r1, qpu_num           # this QPU's own row
        ldi  r1, store_row
        mov  r0, qpu_num
        shl  r0, r0, 7
        add  rb2, r1, r0
        mov.setf -, ra3
        brr.allz -, done                # more QPUs than vectors
        shl  ra4, elem_num, 2
        nop
        nop
next:
        mov  r3, ra4
        add  t0s, ra0, r3
        add  t1s, ra1, r3
        mov  vw_setup, rb1
        add  ra0, ra0, rb0
        nop                     ; nop                   ; ldtmu0
        fmul r0, r4, ra2        ; nop                   ; ldtmu1
        fadd vpm, r0, r4
        mov  vw_setup, rb2
        mov  vw_addr, ra1
        mov  -, vw_wait
        sub.setf ra3, ra3, 1
        brr.anynz -, next
        add  ra1, ra1, rb0
        nop
        nop
done:
        nop                     ; nop                   ; thrend
        nop
        nop
