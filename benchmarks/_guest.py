"""Small guest programs for `benchmarks.soc`, as words; r0 is set to the peripheral base first."""

from __future__ import annotations

import struct

BASE = {0x20000000: 0xE3A00202, 0x3F000000: 0xE3A0043F}
"""mov r0, #base"""
BASE64 = 0x52A7E000
"""mov w0, #0x3f000000"""
HALT = struct.pack("<I", 0xEAFFFFFE)


def _code(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def program(name: str, base: int, wide: bool) -> bytes:
    """An image for a board with this peripheral base."""
    if wide:
        return _code(BASE64) + A64[name]
    return _code(BASE[base]) + A32[name]


def _ticking(add: int) -> bytes:
    """A timer interrupt, again and again; `add` puts the next moment into r3."""
    return _code(
        0xE2802A0B,  # add r2, r0, #0xb000
        0xE3A01002,  # mov r1, #2
        0xE5821210,  # str r1, [r2, #0x210]
        0xE2800A03,  # add r0, r0, #0x3000
        0xE5903004,  # ldr r3, [r0, #4]
        add,  # 1:
        0xE5803010,  # str r3, [r0, #0x10]
        0xE320F003,  # wfi
        0xE5801000,  # str r1, [r0]
        0xEAFFFFFA,  # b 1b
    )


A32: dict[str, bytes] = {
    "alu": _code(
        0xE3A05000,  # mov r5, #0
        0xE2855001,  # 1: add r5, r5, #1
        0xE2811003,  # add r1, r1, #3
        0xE0212005,  # eor r2, r1, r5
        0xE0823001,  # add r3, r2, r1
        0xE0824003,  # add r4, r2, r3
        0xE0826003,  # add r6, r2, r3
        0xE3550402,  # cmp r5, #0x2000000
        0x1AFFFFF7,  # bne 1b
        0xEAFFFFFE,  # b .
    ),
    "memory": _code(
        0xE3A05000,  # mov r5, #0
        0xE3A01601,  # mov r1, #0x100000
        0xE5912000,  # 1: ldr r2, [r1]
        0xE0822005,  # add r2, r2, r5
        0xE5812004,  # str r2, [r1, #4]
        0xE2855001,  # add r5, r5, #1
        0xE3550501,  # cmp r5, #0x400000
        0x1AFFFFF9,  # bne 1b
        0xEAFFFFFE,  # b .
    ),
    "accesses": _code(
        0xE2800602,  # add r0, r0, #0x200000
        0xE3A01701,  # mov r1, #0x40000
        0xE5803040,  # 1: str r3, [r0, #0x40]
        0xE5902034,  # ldr r2, [r0, #0x34]
        0xE2511001,  # subs r1, r1, #1
        0x1AFFFFFB,  # bne 1b
        0xEAFFFFFE,  # b .
    ),
    "polled": _code(
        0xE2800602,  # add r0, r0, #0x200000
        0xE3A01601,  # mov r1, #0x100000
        0xE5902034,  # 1: ldr r2, [r0, #0x34]
        0xE2511001,  # subs r1, r1, #1
        0x1AFFFFFC,  # bne 1b
        0xEAFFFFFE,  # b .
    ),
    "timer": _code(
        0xE2800A03,  # add r0, r0, #0x3000
        0xE5902004,  # 1: ldr r2, [r0, #4]
        0xE3520301,  # cmp r2, #0x4000000
        0x3AFFFFFC,  # blo 1b
        0xEAFFFFFE,  # b .
    ),
    "frame": _code(
        0xE2800503,  # add r0, r0, #0xc00000
        0xE5902134,  # 1: ldr r2, [r0, #0x134]
        0xE3520000,  # cmp r2, #0
        0x0AFFFFFC,  # beq 1b
        0xEAFFFFFE,  # b .
    ),
    "asleep": _code(
        0xE3A01801,  # mov r1, #0x10000
        0xE2802A0B,  # add r2, r0, #0xb000
        0xE5821214,  # str r1, [r2, #0x214]
        0xE2802606,  # add r2, r0, #0x600000
        0xE3A01000,  # mov r1, #0
        0xE320F003,  # 1: wfi
        0xE5821000,  # str r1, [r2]
        0xEAFFFFFC,  # b 1b
    ),
    "four": _code(
        0xE3A01101,  # mov r1, #0x40000000
        0xE28F202C,  # adr r2, 2f
        0xE581209C,  # str r2, [r1, #0x9c]
        0xE58120AC,  # str r2, [r1, #0xac]
        0xE58120BC,  # str r2, [r1, #0xbc]
        0xE320F004,  # sev
        0xE3A01801,  # mov r1, #0x10000
        0xE2802A0B,  # add r2, r0, #0xb000
        0xE5821214,  # str r1, [r2, #0x214]
        0xE2802606,  # add r2, r0, #0x600000
        0xE3A01000,  # mov r1, #0
        0xE320F003,  # 1: wfi
        0xE5821000,  # str r1, [r2]
        0xEAFFFFFC,  # b 1b
        0xE320F002,  # 2: wfe
        0xEAFFFFFD,  # b 2b
    ),
    "listening": _code(
        0xE2801602,  # add r1, r0, #0x200000
        0xE2811A01,  # add r1, r1, #0x1000
        0xE3A02010,  # mov r2, #0x10
        0xE5812038,  # str r2, [r1, #0x38]
        0xE2801A0B,  # add r1, r0, #0xb000
        0xE3A02402,  # mov r2, #0x2000000
        0xE5812214,  # str r2, [r1, #0x214]
        0xE320F003,  # 1: wfi
        0xEAFFFFFD,  # b 1b
    ),
    "event": _code(
        0xE2801602,  # add r1, r0, #0x200000
        0xE2811A01,  # add r1, r1, #0x1000
        0xE3A02010,  # mov r2, #0x10
        0xE5812038,  # str r2, [r1, #0x38]
        0xE2801A0B,  # add r1, r0, #0xb000
        0xE3A02402,  # mov r2, #0x2000000
        0xE5812214,  # str r2, [r1, #0x214]
        0xE10F1000,  # mrs r1, cpsr
        0xE3C11080,  # bic r1, r1, #0x80: only interrupts end a wfe that are not masked
        0xE121F001,  # msr cpsr_c, r1
        0xE320F002,  # 1: wfe
        0xEAFFFFFD,  # b 1b
    ),
    "100 Hz": _ticking(0xE2833C27),  # add r3, r3, #9984
    "1000 Hz": _ticking(0xE2833FFA),  # add r3, r3, #1000
}
A64: dict[str, bytes] = {
    "alu": _code(
        0x52800005,  # mov w5, #0
        0x52A04007,  # mov w7, #0x2000000
        0x110004A5,  # 1: add w5, w5, #1
        0x11000C21,  # add w1, w1, #3
        0x4A050022,  # eor w2, w1, w5
        0x0B010043,  # add w3, w2, w1
        0x0B030044,  # add w4, w2, w3
        0x0B030046,  # add w6, w2, w3
        0x6B0700BF,  # cmp w5, w7
        0x54FFFF21,  # b.ne 1b
        0x14000000,  # b .
    ),
    "memory": _code(
        0x52800005,  # mov w5, #0
        0xD2A00201,  # mov x1, #0x100000
        0xB9400022,  # 1: ldr w2, [x1]
        0x0B050042,  # add w2, w2, w5
        0xB9000422,  # str w2, [x1, #4]
        0x110004A5,  # add w5, w5, #1
        0x715000BF,  # cmp w5, #0x400, lsl #12
        0x54FFFF61,  # b.ne 1b
        0x14000000,  # b .
    ),
    "accesses": _code(
        0x91480000,  # add x0, x0, #0x200, lsl #12
        0x52A00081,  # mov w1, #0x40000
        0xB9004003,  # 1: str w3, [x0, #0x40]
        0xB9403402,  # ldr w2, [x0, #0x34]
        0x71000421,  # subs w1, w1, #1
        0x54FFFFA1,  # b.ne 1b
        0x14000000,  # b .
    ),
    "polled": _code(
        0x91480000,  # add x0, x0, #0x200, lsl #12
        0x52A00201,  # mov w1, #0x100000
        0xB9403402,  # 1: ldr w2, [x0, #0x34]
        0x71000421,  # subs w1, w1, #1
        0x54FFFFC1,  # b.ne 1b
        0x14000000,  # b .
    ),
    "timer": _code(
        0x91400C00,  # add x0, x0, #0x3, lsl #12
        0x52A08003,  # mov w3, #0x4000000
        0xB9400402,  # 1: ldr w2, [x0, #4]
        0x6B03005F,  # cmp w2, w3
        0x54FFFFC3,  # b.lo 1b
        0x14000000,  # b .
    ),
    "frame": _code(
        0x91700000,  # add x0, x0, #0xc00, lsl #12
        0xB9413402,  # 1: ldr w2, [x0, #0x134]
        0x34FFFFE2,  # cbz w2, 1b
        0x14000000,  # b .
    ),
    "counter": _code(
        0xD53BE021,  # mrs x1, cntpct_el0
        0xD53BE022,  # 1: mrs x2, cntpct_el0
        0xCB010042,  # sub x2, x2, x1
        0xD359FC42,  # lsr x2, x2, #25
        0xB4FFFFA2,  # cbz x2, 1b
        0x14000000,  # b .
    ),
    "asleep": _code(
        0x52A00021,  # mov w1, #0x10000
        0x91402C02,  # add x2, x0, #0xb, lsl #12
        0xB9021441,  # str w1, [x2, #0x214]
        0x91580002,  # add x2, x0, #0x600, lsl #12
        0xD503207F,  # 1: wfi
        0xB900005F,  # str wzr, [x2]
        0x17FFFFFE,  # b 1b
    ),
    "four": _code(
        0xD2801B01,  # mov x1, #0xd8
        0x10000182,  # adr x2, 2f
        0xF9000422,  # str x2, [x1, #8]
        0xF9000822,  # str x2, [x1, #16]
        0xF9000C22,  # str x2, [x1, #24]
        0xD503209F,  # sev
        0x52A00021,  # mov w1, #0x10000
        0x91402C02,  # add x2, x0, #0xb, lsl #12
        0xB9021441,  # str w1, [x2, #0x214]
        0x91580002,  # add x2, x0, #0x600, lsl #12
        0xD503207F,  # 1: wfi
        0xB900005F,  # str wzr, [x2]
        0x17FFFFFE,  # b 1b
        0xD503205F,  # 2: wfe
        0x17FFFFFF,  # b 2b
    ),
    "listening": _code(
        0x91480401,  # add x1, x0, #0x201, lsl #12
        0x52800202,  # mov w2, #0x10
        0xB9003822,  # str w2, [x1, #0x38]
        0x91402C01,  # add x1, x0, #0xb, lsl #12
        0x52A04002,  # mov w2, #0x2000000
        0xB9021422,  # str w2, [x1, #0x214]
        0xD503207F,  # 1: wfi
        0x17FFFFFF,  # b 1b
    ),
}
