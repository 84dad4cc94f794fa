// As kernels/caches.s: MMU and data cache on, then the script at 0x100000. Blocks of 2 MiB: the
// first is uncached, the next seven are cached, the peripherals are device memory.
.global _start
_start:
    ldr x0, =0x90000            // level 1, one entry for 1 GiB
    ldr x1, =0x91000            // level 2
    orr x2, x1, #3
    str x2, [x0]
    mov x3, #0
1:  lsl x4, x3, #21
    mov x5, #0x701              // access flag, inner shareable, block, attribute 0
    cbz x3, 2f
    cmp x3, #8
    b.hs 2f
    mov x5, #0x705              // attribute 1
2:  cmp x3, #0x1f8
    b.lo 3f
    mov x5, #0x709              // attribute 2
3:  orr x4, x4, x5
    str x4, [x1, x3, lsl #3]
    add x3, x3, #1
    cmp x3, #512
    b.lo 1b
    ldr x2, =0x00ff44           // 0: normal uncached, 1: write-back, 2: device
    msr mair_el2, x2
    ldr x2, =0x80803519         // 39 bits, 4 KiB
    msr tcr_el2, x2
    msr ttbr0_el2, x0
    isb
    mrs x2, sctlr_el2
    mov x3, #0x1005
    orr x2, x2, x3
    msr sctlr_el2, x2
    isb
    ldr x4, =0x100000
step:
    ldp w0, w1, [x4], #8
    ldr w2, [x4], #4
    cmp w0, #0
    b.eq end
    cmp w0, #1
    b.eq write
    cmp w0, #2
    b.eq read
    cmp w0, #3
    b.eq clean
    cmp w0, #4
    b.eq invalidate
    dc civac, x1
    b step
write:
    str w2, [x1]
    b step
read:
    ldr w9, [x1]
    b step
clean:
    dc cvac, x1
    b step
invalidate:
    dc ivac, x1
    b step
end:
    b end
