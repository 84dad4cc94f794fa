# Every QPU stores sixteen words: its lane numbers plus a number of its own.
#
# Uniforms: that number, and the address to store at.

.set write_rows, 0x1a00         # VPM write setup: whole rows
.set store_row, 0x80904000      # DMA store: one row of 16 words, horizontal

.global lanes
lanes:
        ldi  r1, write_rows
        add  vw_setup, r1, qpu_num      # this QPU's own row
        add  r2, elem_num, unif
        mov  vpm, r2
        ldi  r1, store_row
        mov  r0, qpu_num
        shl  r0, r0, 7
        add  vw_setup, r1, r0
        mov  vw_addr, unif
        mov  -, vw_wait
        nop  ; nop ; thrend
        nop
        nop
