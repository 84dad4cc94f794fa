"""Undocumented behaviour of the board and its firmware: rows of the unknowns table."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS, Unknown, Unknowns, register
from vc4lab.soc.videocore.vpu.vpu_unknowns import VPU_UNKNOWNS
from vc4lab.v3d import unknowns as _v3d_rows  # noqa: F401 – the board has a V3D: its rows first

__all__ = ["BOARD_UNKNOWNS", "DEFAULT_UNKNOWNS", "Unknowns"]

_ORDERS = {"rgb": "byte 0 of a pixel is red", "bgr": "byte 0 of a pixel is blue"}

BOARD_UNKNOWNS = [
    Unknown(
        "arm_upper_addresses",
        "What finds the ARM of a BCM2835 (Pi 1, Zero) from 0x40000000 on?",
        {
            "repeats": "RAM and peripherals again, each GiB: the two upper address bits do nothing",
            "nothing": "nothing, as on a Pi 2 or 3",
        },
        "repeats",
        "Read 0x40008000 on a board and compare it with 0x8000.",
        "The ARM peripherals document draws one GiB; dwelch67's notes on bare metal report a "
        "board where the memory repeats, and programs for the Pi 1 use such addresses",
    ),
    Unknown(
        "framebuffer_address",
        "Which address of its framebuffer does a program get?",
        {
            "bus": "as the VideoCore sees it, 0x40000000 or 0xC0000000 higher (newer firmware)",
            "physical": "as the ARM sees it (firmware of about 2015 and before)",
        },
        "bus",
        "Allocate a framebuffer with the firmware in question.",
        "A comment in FreeBSD's driver names both; the mailbox documentation does not say",
    ),
    Unknown(
        "framebuffer_alpha",
        "Does the alpha mode of a 32-bit framebuffer (tag 0x48007) have an effect?",
        {
            "ignored": "no: framebuffer_ignore_alpha=1 is the default (since November 2016)",
            "mode": "yes, as framebuffer_ignore_alpha=0 in config.txt has it",
        },
        "ignored",
        "Set alpha mode 0 on a board and fill one half with alpha 0, the other with 255.",
        "The default is named by the firmware's maintainer (raspberrypi/firmware, issue 685), not "
        "what becomes of the tag. Ultibo's programs set mode 0 and draw windows of alpha 255 and "
        "pictures of alpha 0 side by side, and their authors show both",
    ),
    Unknown(
        "framebuffer_order",
        "Which pixel order has a framebuffer whose program never sets one (tag 0x48006)?",
        _ORDERS,
        "bgr",
        "Allocate a 32-bit framebuffer by property tags on a board and write 0x000000FF.",
        "Hardware reference 8.15 leaves it open; the firmware gives Linux fbswap=1 unless "
        "config.txt says framebuffer_swap=0, and so are red and blue in LdB-ECM's photograph of "
        "the program GLES2 on a Pi 3",
    ),
    Unknown(
        "framebuffer_order_channel_1",
        "Which pixel order has a framebuffer of mailbox channel 1?",
        _ORDERS,
        "bgr",
        "The same through channel 1.",
        "Captures of programs on a Pi Zero W show byte 0 as blue; hardware reference 8.15. Before "
        "there was framebuffer_swap, firmware had red there (raspberrypi/linux, issue 514)",
    ),
    Unknown(
        "framebuffer_small_pixels",
        "Which bits of a byte are its leftmost pixel at depths of 1, 2 and 4 bits?",
        {"low": "the low bits", "high": "the high bits"},
        "low",
        "Set depth 4 and a palette on a board and write the byte 0x01.",
        "The mailbox documentation names the depths only",
    ),
    Unknown(
        "timer_prescaler",
        "How fast do the generic timers of a Pi 2 or 3 count when an AArch32 kernel begins?",
        {
            "microseconds": "1 MHz (prescaler 0x06AAAAAB), though CNTFRQ says 19.2 MHz",
            "crystal": "19.2 MHz (prescaler 0x80000000)",
        },
        "microseconds",
        "Read 0x40000008 in an AArch32 kernel before anything has written it.",
        "The published stub for AArch64 writes 0x80000000, that for AArch32 writes nothing; the "
        "timer of rsta2/circle stops an AArch32 program that finds anything but 0x06AAAAAB",
    ),
    Unknown(
        "hyp_start",
        "In which mode does the firmware of a Pi 2 or 3 enter an AArch32 kernel?",
        {
            "hyp": "HYP mode: the firmware's own stub since 2016 (with kernel_old=1 none runs)",
            "svc": "supervisor mode, as the firmware of 2015 did",
        },
        "hyp",
        "Print CPSR with the firmware in question.",
        "The stub's source (raspberrypi/tools, armstubs/armstub7.S) leaves 0x1DA in CPSR; how the "
        "firmware left a Pi 2 before is described in raspberrypi/firmware's issue 369 (in "
        "supervisor mode)",
    ),
    Unknown(
        "parked_cores",
        "What do the parked cores of a Pi 2 or 3 wait for, besides their address?",
        {
            "wfe": "an event: the firmware's stub since July 2017 executes wfe before each look",
            "polling": "nothing: an older stub looks again and again",
        },
        "wfe",
        "Write a core's address to its mailbox 3 (AArch32) or to 0xD8 + 8 n (AArch64) without sev.",
        "The stub's source (raspberrypi/tools, armstubs: pull request 76 of May 2017 for AArch32, "
        "armstub8.S); rsta2/circle's issue 43 (with the firmware of July 2017 cores no longer "
        "start without sev); FreeBSD's r323132",
    ),
    Unknown(
        "monitor_call",
        "What does smc do in an AArch32 program that the firmware has left in HYP mode?",
        {
            "stub": "the stub's monitor (re-)enters HYP mode and changes r0 and r1; a program may "
            "put its own handler at address 8",
            "undefined": "it is undefined: the stub has disabled it",
        },
        "stub",
        "Execute smc in HYP mode with the firmware in question.",
        "The stub's source up to 2020; a change of September 2020 (pull request 117) disables smc, "
        "and which firmware has which is not said",
    ),
    Unknown(
        "mailbox_answer_time",
        "How long does the firmware take for a mailbox message?",
        {"10us": "10 microseconds", "100us": "100 microseconds", "1ms": "1 millisecond"},
        "100us",
        "Read the system timer before a message is sent and after its reply has come.",
        "No document says so. raspberrypi/firmware's issue 92 reports 350 microseconds for setting "
        "a clock from Linux, most of them in the ARM's own drivers",
    ),
    Unknown(
        "uart_clock",
        "Which clock has the PL011 at the start, if config.txt (init_uart_clock) does not say so?",
        {
            "board": "that of the table of boards, as firmware since September 2016 has it",
            "3mhz": "3 MHz, but 48 MHz on a Pi 3: as firmware before has it",
        },
        "board",
        "Read the rate (mailbox tag 0x30002, clock 2) with the firmware in question.",
        "raspberrypi/firmware's issue 643 has the rates of both times and the change; config.txt's "
        "documentation has today's only",
    ),
    Unknown(
        "execute_qpu_failure",
        "What does the mailbox's execute QPU (0x30011) answer when it fails or times out?",
        {"error": "0x80000000", "one": "1"},
        "error",
        "Execute a program that never ends.",
        "The mailbox documentation says non-zero; hardware reference 8.7",
    ),
    Unknown(
        "pll_start",
        "Which PLLs run when the firmware starts a program?",
        {
            "all": "A for the V3D, the codec and the ISP, B for the ARM, C for the core, D for the "
            "devices, H for the display",
            "used": "not A: C serves the V3D, the codec and the ISP as well",
        },
        "all",
        "Read A2W's registers on a board before a kernel has changed them.",
        "No document has the registers' first values. Linux's clk_summary of a Pi 3 B+ (A. "
        "McDermond, linux-i2c, 28 May 2019) shows A and C at 2.4 GHz, D at 2.000000024 and who "
        "takes what from them; that other boards' A and C run at 2 GHz is a choice",
    ),
    Unknown(
        "arm1176_unaligned",
        "How does the ARM1176 of a Pi 1 or Zero treat unaligned accesses when a kernel begins?",
        {
            "armv5": "SCTLR.U = 0: ldr rotates, others ignore the lowest address bits",
            "armv6": "SCTLR.U = 1: ldr, str and their half-word forms work at any address",
        },
        "armv5",
        "Read SCTLR on a board before a kernel has changed it: bit 22.",
        "The core's manual (DDI 0301H, 3.2.7) leaves it to a pin of the chip, UBITINIT, and has 0 "
        "as the usual value; programs for the Pi 1 set the bit (boochow/micropython-raspberrypi), "
        "which one needed for its unaligned loads (micropython issue 3201)",
    ),
    Unknown(
        "exclusive_without_monitor",
        "What do ldrex and strex of an ARM1176 or Cortex-A7 do in memory that is not cached?",
        {
            "fails": "strex never stores, and reports so",
            "abort": "ldrex takes a data abort, as on a Cortex-A53",
        },
        "fails",
        "Execute both on a Pi 1 and a Pi 2 before the MMU is on, and print strex's result.",
        "The manuals of the cores demand a monitor at the bus and do not say what comes without "
        "one; that it does not work before the cache is on is reported of a Pi 1 (genode issue "
        "1190, onkwon/yaos issue 13). What a Pi 2 does is a choice",
    ),
    *VPU_UNKNOWNS,
]

register(BOARD_UNKNOWNS)
