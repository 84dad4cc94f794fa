"""Messages about loads and stores that a core does otherwise than a program expects."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_UNALIGNED = (
    "ARM Architecture Reference Manual ARMv7-A, A3.2.1, A3.2.2 and B3.2.1; ARMv8-A, B2.5.2 and D5.2.9"
)

ENTRIES = [
    Entry(
        "SOC-110",
        "Unaligned access that the core refuses",
        "While the MMU is off, a Cortex-A7 or A53 (Pi 2, Pi 3) treats all memory as Device or "
        "Strongly-ordered memory, where an address that is no multiple of the access's size leads "
        "to an alignment fault (a data abort); QEMU lets such accesses work. The same goes for "
        "Device memory with the MMU on, for all memory with SCTLR.A set, and in AArch32 always for "
        "ldm, stm, ldrd, strd, vldr and vstr at an address that is no multiple of 4. AArch64 "
        "needs 16 bytes for a q register. Compilers make such accesses of packed structures, of "
        "pointers that were cast, and of small copies. `--forgiving` lets them work.",
        f'{_UNALIGNED}; P. Finlayson, "Raspberry Pi Bare Metal Programming and '
        '-mno-unaligned-access" (Pi1541 on a Pi 3); wolfSSL/wolfBoot issue 122 (works in QEMU, '
        "faults on a Pi 3)",
        "Compile with -mno-unaligned-access (AArch32) or -mstrict-align (AArch64), copy bytes with "
        "memcpy instead of casting pointers, or switch the MMU on with RAM as Normal memory.",
    ),
    Entry(
        "SOC-111",
        "Unaligned access of an ARM1176 in its old way",
        "An ARM1176 (Pi 1, Zero) starts with SCTLR.U = 0, where an unaligned ldr loads the word "
        "that contains the address and rotates it, and all other loads and stores ignore the "
        "lowest bits of the address. The program goes on with wrong bytes. `--forgiving` lets "
        "such accesses work as in ARMv7; `--unknown arm1176_unaligned=armv6` starts with U = 1.",
        "ARM1176JZF-S TRM (DDI 0301H) 3.2.7, 4.2.3 and 4.2.4",
        "Set bit 22 of SCTLR at the start (mrc/mcr p15, 0, rt, c1, c0, 0), which makes ldr, str "
        "and their half-word forms work at any address, or compile with -mno-unaligned-access.",
    ),
    Entry(
        "SOC-112",
        "A framebuffer that the program does not wait for",
        "The firmware needs time for a mailbox message: until then the message in memory is as the "
        "program wrote it, and there is no framebuffer. This program goes on without having looked "
        "for the reply, so that the address it reads is not that of the framebuffer. The same goes "
        "for every message: a clock that is not on yet, a display that is not set yet. vc4lab lets "
        "100 microseconds pass (`--unknown mailbox_answer_time=10us` and 1ms); `--forgiving` "
        "answers before the next instruction.",
        "Raspberry Pi firmware wiki, accessing mailboxes; raspberrypi/firmware issue 92 (350 "
        "microseconds measured from Linux)",
        "After writing to mailbox 1, wait until the status register of mailbox 0 (P + 0xB898) no "
        "longer says empty (bit 30), and read the reply from P + 0xB880 until its low four bits "
        "are the channel.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-113",
        "Exclusive access to memory that is not cached",
        "Atomic operations (ldrex and strex, ldxr and stxr, what compilers make of spin locks and "
        "C's atomics) need a monitor that watches over the address. The cores have one for "
        "write-back memory with the cache on; for other memory one at the bus would be needed, "
        "and there is none. Before the MMU and the data cache are on, ldxr (Pi 3, also in AArch32) "
        "takes a data abort (unsupported exclusive access); on a Pi 1 or 2 strex never stores "
        "(`--unknown exclusive_without_monitor=abort` for the other possibility), so that a loop "
        "around it never ends. With both on, memory that the tables make Device memory or "
        "non-cacheable fails alike; each instruction is looked at until it meets cached memory. "
        "QEMU lets it work, and so does `--forgiving`.",
        "Cortex-A15 TRM (DDI 0438G) 6.4.5, Cortex-A35 TRM A6.4 (the same monitors as a Cortex-A7's "
        "and A53's); zephyr issue 33515 and SerenityOS pull request 18846 (Pi 3), genode issue "
        "1190 and onkwon/yaos issue 13 (Pi 1)",
        "Switch the MMU and the data cache on (on every core, RAM as shareable write-back memory) "
        "before the first atomic operation; until then let one core alone do the work, or use "
        "plain flags with barriers, or Peterson's algorithm.",
    ),
    Entry(
        "SOC-114",
        "What the GPU is still writing is read",
        "The program has started a job of the GPU and loads from the memory that the job writes "
        "before it can be through. On a board the load finds what lay there before, or a part of "
        "the result, from time to time another one. vc4lab does the job when it is started and lets "
        "its time pass afterwards (a rough estimate, within a factor of two of boards), so that the "
        "load finds the whole result. Reported once for each kind of job; not with `--forgiving`.",
        "VideoCore IV 3D Architecture Reference Guide, V3D_CT1CS, V3D_RFC and INTCTL (FRDONE)",
        "Wait for the end of the job before the first load: until RFC has counted the frame, or by "
        "the V3D's interrupt.",
        Severity.HINT,
        fails_on_boards=True,
    ),
    Entry(
        "SOC-115",
        "A translation is changed without TLB invalidation",
        "With the MMU on, the program has changed a valid entry of its translation tables (another "
        "place, another kind of memory, or a table instead of a block), and the core has not "
        "invalidated its TLB since. A core keeps translations for as long as it likes: on a board the "
        "old one may stay for ever, or go at any moment. vc4lab's cores forget theirs at the next vsync "
        "at the latest. Each core has a TLB of its own. Entries that were invalid before need no "
        "invalidation. Looked at when the MMU is switched on, at each vsync and when the program ends; "
        "reported once; not for Linux, for programs with more than 256 tables, or with `--forgiving`.",
        "ARM Architecture Reference Manual ARMv7-A, B3.10.1, B3.10.2; ARMv8-A, D5.10.1 (break-before-make)",
        "After the store to the table: dsb; invalidate the address (TLBIMVA, mcr p15, 0, rt, c8, c7, 1, "
        "on several cores TLBIMVAIS, c8, c3, 1; tlbi vae1is on AArch64) or all; dsb; isb. Where place or "
        "kind of memory change, write an invalid entry and invalidate before the new entry.",
        Severity.HINT,
        fails_on_boards=True,
    ),
    Entry(
        "SOC-116",
        "A vector table that is not aligned",
        "The low bits of VBAR (and HVBAR) are ignored: a table has to be aligned to 32 bytes in AArch32 "
        "and to 2048 in AArch64. Where it is not, the core takes exceptions at an address before the "
        "table, in whatever lies there.",
        "ARM Architecture Reference Manual ARMv7-A, B4.1 VBAR; ARMv8-A, VBAR_EL1 (bits 10 to 0 are RES0)",
        "Put .balign 2048 (.balign 32 in AArch32) before the table's label, and the table into a section "
        "that the linker script does not move.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-117",
        "A lite DMA channel is asked for what it does not have",
        "Channels 7 to 14 are lite engines: without 2D mode, and with 16 bits of length, so that more than "
        "65535 bytes become less. They also have half the bandwidth.",
        "BCM2835 ARM Peripherals 4.5, DMA LITE engines",
        "Use a channel from 0 to 6 that the firmware leaves to the ARM (tag 0x00060001 gives a mask), or "
        "make a control block for each row, or each 64 KiB.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-118",
        "A core timer's interrupt goes nowhere",
        "The program sleeps with interrupts allowed and its core's own timer on (CNTP_CTL or CNTV_CTL is 1), "
        "but the register of the local peripherals that routes it to the core is 0. The interrupt "
        "controller at 0xB200 does not know these timers.",
        "BCM2836 ARM-local peripherals (QA7), 4.6 core timers interrupts",
        "Write bit 1 (CNTP, non-secure), bit 2 (CNTHP) or bit 3 (CNTV) to 0x40000040 + 4 * core.",
        Severity.HINT,
    ),
]
