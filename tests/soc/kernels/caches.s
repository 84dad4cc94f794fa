@ Turns the MMU and the data cache on and does what a script at 0x100000 says: three words a step,
@ what (1 store, 2 load, 3 clean, 4 invalidate, 5 clean and invalidate a line, 6 invalidate all by
@ set and way, 7 clean and invalidate a range (ARM1176), 0 end), address, value. The second MiB (the script) is uncached, the third to the
@ sixteenth and the VideoCore's memory are cached, the peripherals are device memory.
.include "common.inc"
.global _start
_start:
    begin
    .ifndef OLD
    leave_hyp                   @ it has an MMU of its own
    .endif
    ldr r0, =0x4000
    mov r1, #0
    ldr r2, =0x00c02            @ strongly ordered, full access
    ldr r6, =0x100c
1:  orr r3, r2, r1, lsl #20
    cmp r1, #2
    blo 2f
    cmp r1, #16
    orrlo r3, r3, r6            @ TEX 1, C, B: write-back, write-allocate
    blo 2f
    ldr r4, =(P >> 20) - 0x30
    cmp r1, r4
    blo 2f
    cmp r1, #P >> 20
    orrlo r3, r3, r6
2:  str r3, [r0, r1, lsl #2]
    add r1, r1, #1
    cmp r1, #4096
    blo 1b
    mcr p15, 0, r0, c2, c0, 0
    mov r0, #0
    mcr p15, 0, r0, c2, c0, 2
    mvn r0, #0
    mcr p15, 0, r0, c3, c0, 0
    mcr p15, 0, r0, c8, c7, 0
    mrc p15, 0, r0, c1, c0, 0
    orr r0, r0, #0x1000
    orr r0, r0, #5
    .ifdef OLD
    orr r0, r0, #0xC00000       @ ARM1176: descriptors and unaligned accesses of ARMv6
    .endif
    mcr p15, 0, r0, c1, c0, 0
    ldr r4, =0x100000
step:
    ldmia r4!, {r0, r1, r2}
    cmp r0, #0
    beq end
    cmp r0, #1
    beq write
    cmp r0, #2
    beq read
    cmp r0, #3
    beq clean
    cmp r0, #4
    beq invalidate
    cmp r0, #5
    beq both
    .ifdef OLD
    cmp r0, #7
    beq range
    .endif
    mov r0, #0
    mcr p15, 0, r0, c7, c6, 2
    b step
write:
    str r2, [r1]
    b step
read:
    ldr r9, [r1]
    b step
clean:
    mcr p15, 0, r1, c7, c10, 1
    b step
invalidate:
    mcr p15, 0, r1, c7, c6, 1
    b step
both:
    mcr p15, 0, r1, c7, c14, 1
    b step
.ifdef OLD
range:
    mcrr p15, 0, r2, r1, c14    @ ARM1176: from r1 to r2
    b step
.endif
end:
    ready
