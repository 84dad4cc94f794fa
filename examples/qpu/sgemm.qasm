# A tile of a matrix product on one QPU: 16 rows (the lanes) by 64 columns (both register files).
#
# C[r][c] = sum over k of A[k][r] * B[k][c].  A comes through the texture unit, a vector of 16 rows
# for each k; B comes as uniforms. Start it on all twelve QPUs at once: each takes its own four rows
# of the VPM to store its tile.
#
# Uniforms: address of A (16 floats for each k), number of ks, B (64 floats for each k), address of C
# (64 columns of 16 floats).

.set one_tile_row, 64           # bytes of 16 floats
.set write_rows, 0x1a00         # VPM write setup: whole rows
.set store_rows, 0x82104000     # DMA store: 4 rows of 16 words

.global sgemm
sgemm:
        ldi  r3, one_tile_row
        nop                     ; mul24 r0, elem_num, 4
        add  r1, r0, unif
        mov  t0s, r1
        mov  r2, unif
        ldi  ra0, 0 ; ldi  rb0, 0
        ldi  ra1, 0 ; ldi  rb1, 0
        ldi  ra2, 0 ; ldi  rb2, 0
        ldi  ra3, 0 ; ldi  rb3, 0
        ldi  ra4, 0 ; ldi  rb4, 0
        ldi  ra5, 0 ; ldi  rb5, 0
        ldi  ra6, 0 ; ldi  rb6, 0
        ldi  ra7, 0 ; ldi  rb7, 0
        ldi  ra8, 0 ; ldi  rb8, 0
        ldi  ra9, 0 ; ldi  rb9, 0
        ldi  ra10, 0 ; ldi  rb10, 0
        ldi  ra11, 0 ; ldi  rb11, 0
        ldi  ra12, 0 ; ldi  rb12, 0
        ldi  ra13, 0 ; ldi  rb13, 0
        ldi  ra14, 0 ; ldi  rb14, 0
        ldi  ra15, 0 ; ldi  rb15, 0
        ldi  ra16, 0 ; ldi  rb16, 0
        ldi  ra17, 0 ; ldi  rb17, 0
        ldi  ra18, 0 ; ldi  rb18, 0
        ldi  ra19, 0 ; ldi  rb19, 0
        ldi  ra20, 0 ; ldi  rb20, 0
        ldi  ra21, 0 ; ldi  rb21, 0
        ldi  ra22, 0 ; ldi  rb22, 0
        ldi  ra23, 0 ; ldi  rb23, 0
        ldi  ra24, 0 ; ldi  rb24, 0
        ldi  ra25, 0 ; ldi  rb25, 0
        ldi  ra26, 0 ; ldi  rb26, 0
        ldi  ra27, 0 ; ldi  rb27, 0
        ldi  ra28, 0 ; ldi  rb28, 0
        ldi  ra29, 0 ; ldi  rb29, 0
        ldi  ra30, 0 ; ldi  rb30, 0
        ldi  ra31, 0 ; ldi  rb31, 0

product:
        add  r1, r1, r3         ; nop                   ; ldtmu0
        mov  t0s, r1            ; fmul r0, r4, unif     # the next vector is on its way
        fadd ra0, ra0, r0       ; fmul r0, r4, unif
        fadd rb0, rb0, r0       ; fmul r0, r4, unif
        fadd ra1, ra1, r0       ; fmul r0, r4, unif
        fadd rb1, rb1, r0       ; fmul r0, r4, unif
        fadd ra2, ra2, r0       ; fmul r0, r4, unif
        fadd rb2, rb2, r0       ; fmul r0, r4, unif
        fadd ra3, ra3, r0       ; fmul r0, r4, unif
        fadd rb3, rb3, r0       ; fmul r0, r4, unif
        fadd ra4, ra4, r0       ; fmul r0, r4, unif
        fadd rb4, rb4, r0       ; fmul r0, r4, unif
        fadd ra5, ra5, r0       ; fmul r0, r4, unif
        fadd rb5, rb5, r0       ; fmul r0, r4, unif
        fadd ra6, ra6, r0       ; fmul r0, r4, unif
        fadd rb6, rb6, r0       ; fmul r0, r4, unif
        fadd ra7, ra7, r0       ; fmul r0, r4, unif
        fadd rb7, rb7, r0       ; fmul r0, r4, unif
        fadd ra8, ra8, r0       ; fmul r0, r4, unif
        fadd rb8, rb8, r0       ; fmul r0, r4, unif
        fadd ra9, ra9, r0       ; fmul r0, r4, unif
        fadd rb9, rb9, r0       ; fmul r0, r4, unif
        fadd ra10, ra10, r0     ; fmul r0, r4, unif
        fadd rb10, rb10, r0     ; fmul r0, r4, unif
        fadd ra11, ra11, r0     ; fmul r0, r4, unif
        fadd rb11, rb11, r0     ; fmul r0, r4, unif
        fadd ra12, ra12, r0     ; fmul r0, r4, unif
        fadd rb12, rb12, r0     ; fmul r0, r4, unif
        fadd ra13, ra13, r0     ; fmul r0, r4, unif
        fadd rb13, rb13, r0     ; fmul r0, r4, unif
        fadd ra14, ra14, r0     ; fmul r0, r4, unif
        fadd rb14, rb14, r0     ; fmul r0, r4, unif
        fadd ra15, ra15, r0     ; fmul r0, r4, unif
        fadd rb15, rb15, r0     ; fmul r0, r4, unif
        fadd ra16, ra16, r0     ; fmul r0, r4, unif
        fadd rb16, rb16, r0     ; fmul r0, r4, unif
        fadd ra17, ra17, r0     ; fmul r0, r4, unif
        fadd rb17, rb17, r0     ; fmul r0, r4, unif
        fadd ra18, ra18, r0     ; fmul r0, r4, unif
        fadd rb18, rb18, r0     ; fmul r0, r4, unif
        fadd ra19, ra19, r0     ; fmul r0, r4, unif
        fadd rb19, rb19, r0     ; fmul r0, r4, unif
        fadd ra20, ra20, r0     ; fmul r0, r4, unif
        fadd rb20, rb20, r0     ; fmul r0, r4, unif
        fadd ra21, ra21, r0     ; fmul r0, r4, unif
        fadd rb21, rb21, r0     ; fmul r0, r4, unif
        fadd ra22, ra22, r0     ; fmul r0, r4, unif
        fadd rb22, rb22, r0     ; fmul r0, r4, unif
        fadd ra23, ra23, r0     ; fmul r0, r4, unif
        fadd rb23, rb23, r0     ; fmul r0, r4, unif
        fadd ra24, ra24, r0     ; fmul r0, r4, unif
        fadd rb24, rb24, r0     ; fmul r0, r4, unif
        fadd ra25, ra25, r0     ; fmul r0, r4, unif
        fadd rb25, rb25, r0     ; fmul r0, r4, unif
        fadd ra26, ra26, r0     ; fmul r0, r4, unif
        fadd rb26, rb26, r0     ; fmul r0, r4, unif
        fadd ra27, ra27, r0     ; fmul r0, r4, unif
        fadd rb27, rb27, r0     ; fmul r0, r4, unif
        fadd ra28, ra28, r0     ; fmul r0, r4, unif
        fadd rb28, rb28, r0     ; fmul r0, r4, unif
        fadd ra29, ra29, r0     ; fmul r0, r4, unif
        fadd rb29, rb29, r0     ; fmul r0, r4, unif
        sub.setf r2, r2, 1      ; nop
        fadd ra30, ra30, r0     ; fmul r0, r4, unif
        brr.anynz product
        fadd rb30, rb30, r0     ; fmul r0, r4, unif
        fadd ra31, ra31, r0     ; fmul r0, r4, unif
        fadd rb31, rb31, r0

# Four columns at a time go through the VPM to memory.
        nop                     ; nop                   ; ldtmu0        # the vector that is not wanted
        mov  r3, unif
        ldi  r0, 4
        nop                     ; mul24 r0, qpu_num, r0 # first VPM row
        ldi  r1, write_rows
        add  r1, r1, r0
        shl  r0, r0, 7
        ldi  r2, store_rows
        add  r2, r2, r0
        ldi  r0, 4 * one_tile_row
        mov  vw_setup, r1
        mov  vpm, ra0
        mov  vpm, rb0
        mov  vpm, ra1
        mov  vpm, rb1
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra2
        mov  vpm, rb2
        mov  vpm, ra3
        mov  vpm, rb3
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra4
        mov  vpm, rb4
        mov  vpm, ra5
        mov  vpm, rb5
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra6
        mov  vpm, rb6
        mov  vpm, ra7
        mov  vpm, rb7
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra8
        mov  vpm, rb8
        mov  vpm, ra9
        mov  vpm, rb9
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra10
        mov  vpm, rb10
        mov  vpm, ra11
        mov  vpm, rb11
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra12
        mov  vpm, rb12
        mov  vpm, ra13
        mov  vpm, rb13
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra14
        mov  vpm, rb14
        mov  vpm, ra15
        mov  vpm, rb15
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra16
        mov  vpm, rb16
        mov  vpm, ra17
        mov  vpm, rb17
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra18
        mov  vpm, rb18
        mov  vpm, ra19
        mov  vpm, rb19
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra20
        mov  vpm, rb20
        mov  vpm, ra21
        mov  vpm, rb21
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra22
        mov  vpm, rb22
        mov  vpm, ra23
        mov  vpm, rb23
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra24
        mov  vpm, rb24
        mov  vpm, ra25
        mov  vpm, rb25
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra26
        mov  vpm, rb26
        mov  vpm, ra27
        mov  vpm, rb27
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra28
        mov  vpm, rb28
        mov  vpm, ra29
        mov  vpm, rb29
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        add  r3, r3, r0
        mov  vw_setup, r1
        mov  vpm, ra30
        mov  vpm, rb30
        mov  vpm, ra31
        mov  vpm, rb31
        mov  vw_setup, r2
        mov  vw_addr, r3
        mov  -, vw_wait
        nop                     ; nop                   ; thrend
        nop
        nop
