# Two programs that add up a row of vectors (16 words each) and store the total in all 16 lanes.
#
# Uniforms of both: address of the vectors, number of vectors, address for the 16 words of result.
# The first reads through the texture unit, the second copies four vectors at a time into the VPM.

.set vector, 64                 # bytes
.set write_row, 0x1a00          # VPM write setup: one whole row
.set store_row, 0x80904000      # DMA store: one row of 16 words
.set read_rows, 0x00401a00      # VPM read setup: four whole rows
.set load_rows, 0x83041000      # DMA load: four rows of 16 words, 64 bytes apart

.global sum_tmu
sum_tmu:
        nop                     ; mul24 r0, elem_num, 4
        add  r1, r0, unif       # every lane has its own address
        mov  r2, unif
        ldi  r3, vector
        mov  t0s, r1            # two requests are always on their way
        add  r1, r1, r3
        mov  t0s, r1
        mov  r0, 0
next_vector:
        add  r1, r1, r3         ; nop   ; ldtmu0
        mov  t0s, r1
        sub.setf r2, r2, 1
        brr.anynz next_vector
        add  r0, r0, r4
        nop
        nop
        nop                     ; nop   ; ldtmu0        # the two after the end: not wanted
        nop                     ; nop   ; ldtmu0
        brr finish
        nop
        nop
        nop

# Each QPU has four rows of the VPM for itself; the DMA engine they share, so its setup, start and end
# stand between mutex and mutex.
.global sum_dma
sum_dma:
        mov  r1, unif
        mov  r2, unif
        mov  r3, 4
        nop                     ; mul24 r3, qpu_num, r3         # our first row
        ldi  r0, read_rows
        add  ra1, r0, r3
        shl  r3, r3, 4
        ldi  r0, load_rows
        add  ra2, r0, r3
        ldi  ra0, 4 * vector
        mov  r0, 0
next_rows:
        mov  -, mutex
        mov  vr_setup, ra2
        mov  vr_addr, r1
        mov  -, vr_wait
        mov  mutex, 1
        mov  vr_setup, ra1
        add  r1, r1, ra0
        sub.setf r2, r2, 4
        nop
        add  r0, r0, vpm
        add  r0, r0, vpm
        add  r0, r0, vpm
        brr.anynz next_rows
        add  r0, r0, vpm
        nop
        nop

# Both end here: the 16 lanes are added by turning the vector by 8, 4, 2 and 1 lanes, then every lane has
# the total; through the VPM to memory, and an interrupt for programs that wait for it.
finish:
        nop
        nop                     ; mov r1, r0 >> 8
        add  r0, r0, r1
        nop
        nop                     ; mov r1, r0 >> 4
        add  r0, r0, r1
        nop
        nop                     ; mov r1, r0 >> 2
        add  r0, r0, r1
        nop
        nop                     ; mov r1, r0 >> 1
        add  r0, r0, r1
        mov  r3, 4
        nop                     ; mul24 r3, qpu_num, r3
        ldi  r1, write_row
        add  vw_setup, r1, r3
        mov  vpm, r0
        shl  r3, r3, 7
        ldi  r1, store_row
        mov  -, mutex
        add  vw_setup, r1, r3
        mov  vw_addr, unif
        mov  -, vw_wait
        mov  mutex, 1
        mov  irq, 1
        nop                     ; nop   ; thrend
        nop
        nop
