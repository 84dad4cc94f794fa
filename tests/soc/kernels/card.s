@ The SD card: the first bytes of block 8192 by polling, then of block 9, which was written, by interrupt.
.include "common.inc"
.equ EMMC, P + 0x300000
.equ IRQ, P + 0xb200
.equ ARG2, 0x00
.equ BLKSIZECNT, 0x04
.equ ARG1, 0x08
.equ CMDTM, 0x0c
.equ RESP0, 0x10
.equ DATA, 0x20
.equ CONTROL0, 0x28
.equ CONTROL1, 0x2c
.equ INTERRUPT, 0x30
.equ IRPT_MASK, 0x34
.equ IRPT_EN, 0x38
.macro command code, argument
    ldr r0, =\code
    ldr r1, =\argument
    bl send
.endm

.global _start
_start:
    leave_hyp
    begin
    ldr r0, =vectors
    mcr p15, 0, r0, c12, c0, 0
    cps #0x12
    mov sp, #0x4000
    cps #0x13
    ldr r4, =EMMC
    mov r0, #1 << 24
    str r0, [r4, #CONTROL1]
1:  ldr r0, [r4, #CONTROL1]
    tst r0, #1 << 24
    bne 1b
    ldr r0, =0x000e6801     @ internal clock, divider, longest time-out
    str r0, [r4, #CONTROL1]
1:  ldr r1, [r4, #CONTROL1]
    tst r1, #2
    beq 1b
    orr r0, r0, #4
    str r0, [r4, #CONTROL1]
    mvn r0, #0
    str r0, [r4, #IRPT_MASK]
    command 0x00000000, 0
    command 0x08020000, 0x1aa
2:  command 0x37020000, 0
    command 0x29020000, 0x40ff8000
    tst r0, #1 << 31
    beq 2b
    command 0x02010000, 0
    command 0x03020000, 0
    mov r6, r0, lsr #16
    mov r6, r6, lsl #16     @ its address
    mov r1, r6
    ldr r0, =0x07030000
    bl send
    mov r0, #512            @ one block of 512 bytes
    orr r0, r0, #1 << 16
    str r0, [r4, #BLKSIZECNT]

    command 0x11220010, 8192
    mov r7, #0x20
    bl wait
    bl take
    bl print

    command 0x18220000, 9   @ write block 9
    mov r7, #0x10
    bl wait
    ldr r0, =0x0a4b4f21     @ "!OK", end of line
    mov r2, #128
1:  str r0, [r4, #DATA]
    subs r2, r2, #1
    bne 1b
    mov r7, #2
    bl wait

    ldr r0, =IRQ            @ read it by interrupt
    mov r1, #1 << 30
    str r1, [r0, #0x14]
    mov r1, #0x20
    str r1, [r4, #IRPT_EN]
    mov r8, #0
    cpsie i
    command 0x11220010, 9
1:  wfi
    cmp r8, #0
    beq 1b
    bl take
    bl print
    cpsid i
    ready

send:                       @ r0 command, r1 argument: the answer in r0
    mvn r7, #0
    str r7, [r4, #INTERRUPT]
    str r1, [r4, #ARG1]
    str r0, [r4, #CMDTM]
    mov r7, #1
    mov r10, lr
    bl wait
    ldr r0, [r4, #RESP0]
    bx r10

wait:                       @ until bits r7 of INTERRUPT
    ldr r0, [r4, #INTERRUPT]
    tst r0, #1 << 15
    bne failed
    tst r0, r7
    beq wait
    str r7, [r4, #INTERRUPT]
    bx lr

failed:
    ldr r1, =UART
    mov r0, #'?'
    str r0, [r1]
    ready

take:                       @ a block; its first word in r9
    ldr r9, [r4, #DATA]
    mov r2, #127
1:  ldr r0, [r4, #DATA]
    subs r2, r2, #1
    bne 1b
    bx lr

print:                      @ the bytes of r9
    ldr r1, =UART
    mov r2, #4
1:  str r9, [r1]
    mov r9, r9, lsr #8
    subs r2, r2, #1
    bne 1b
    bx lr

interrupt:
    mov r8, #0
    str r8, [r4, #IRPT_EN]
    mov r8, #0x20
    str r8, [r4, #INTERRUPT]
    subs pc, lr, #4
    .align 5
vectors:
    b .
    b .
    b .
    b .
    b .
    b .
    b interrupt
    b .
    .ltorg
