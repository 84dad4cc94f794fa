"""Messages about the processors of the board: exceptions, HYP mode, storms, the VPU."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_MAILBOX = "Raspberry Pi firmware wiki, mailbox property interface"
_VPU = _MAILBOX + ", execute code (0x00030010); VideoCore IV Programmers Manual (hermanhermitage)"

ENTRIES = [
    Entry(
        "SOC-120",
        "A parked core that no event wakes",
        "The firmware's stub lets the cores 1 to 3 wait for an event (wfe) before each look at "
        "where their address is written: mailbox 3 for AArch32, 0xD8 + 8 n in memory for AArch64. "
        "Without sev after that they sleep on. Firmware before July 2017 looked again and again in "
        "AArch32 (`--unknown parked_cores=polling`), and so does `--forgiving`. A core in wfe of "
        "the program's own is woken by sev, by an interrupt that is not masked, by the event "
        "stream of its timer, and on a Pi 3 by a write to where its load-exclusive has looked; "
        "not by a word in memory or a mailbox alone.",
        "raspberrypi/tools, armstubs/armstub7.S (pull request 76, May 2017) and armstub8.S; "
        "rsta2/circle issue 43; FreeBSD r323132; ARM Architecture Reference Manual ARMv7-A "
        "B1.8.13, ARMv8-A D1.17.1",
        "Execute `dsb` and `sev` after writing the address.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-040",
        "The program hangs",
        "Nothing visible from outside has happened for a long time: no frame, no output, no "
        "message. The message says what each part waits for.",
        "vc4lab boot --help",
        "Check what the named register or unit waits for: often a counter that was not cleared, a "
        "job that was not started, or an interrupt that never comes. A variable that an interrupt "
        "handler or another core changes must be volatile: else the compiler reads it once, and "
        "the loop that waits for it has no load.",
    ),
    Entry(
        "SOC-042",
        "Exception without a handler",
        "The CPU took an exception (undefined instruction, abort, supervisor call, interrupt), and "
        "at its vector there is no code, or nothing that is a handler: what stands there faults in "
        "turn, or leads into empty RAM. A board would execute it, too. The message names the first "
        "exception.",
        "ARM Architecture Reference Manual ARMv7-A, B1.8; ARMv8-A, D1.10",
        "Check the named instruction: often data executed as code, a wild pointer, or floating "
        "point before it was enabled. For an interrupt or a supervisor call: copy the program's "
        "vectors to address 0, or set VBAR to their address (AArch64: VBAR_EL1 or VBAR_EL2). In "
        "HYP mode (Pi 2 and 3, AArch32), leave it first with eret, or set HVBAR.",
    ),
    Entry(
        "SOC-043",
        "The CPU executes empty RAM",
        "The program jumped or returned to memory that contains only zeros. They execute as "
        "no-operations, so a board would continue until it meets something else.",
        "ARM Architecture Reference Manual ARMv7-A, A8 (andeq r0, r0, r0)",
        "Check for an overwritten return address, a wild function pointer, or a stack pointer that "
        "was never set.",
    ),
    Entry(
        "SOC-044",
        "SPSR_hyp accessed by name in HYP mode",
        "In a mode, mrs and msr cannot name that mode's own SPSR: the result is unpredictable, and "
        "a core may treat the instruction as undefined. vc4lab does what was meant.",
        "ARM Architecture Reference Manual ARMv7-A, B9.2.3 (banked registers)",
        "Write msr spsr_cxsf instead of msr spsr_hyp.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-045",
        "Mode change that HYP mode does not allow",
        "The firmware starts AArch32 programs of a Pi 2 or 3 in HYP mode, which cps and msr cpsr "
        "cannot leave. A Cortex-A7 (Pi 2) stays in HYP mode, so what follows (mostly setting stack "
        "pointers of other modes) changes HYP mode's registers; a Cortex-A53 (Pi 3) treats the "
        "next instruction as undefined.",
        "ARM Architecture Reference Manual ARMv7-A, B9.3.2 (cps); ARMv8-A, G1.9 (illegal return "
        "and change of state)",
        "Leave HYP mode first: put the new CPSR into spsr_cxsf and the address into ELR_hyp, then "
        "eret. With kernel_old=1 in config.txt the firmware starts the program in supervisor mode "
        "at address 0; `--firmware 2015` starts it as the firmware of that year does.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-046",
        "Exception in HYP mode without HVBAR",
        "HYP mode takes its exceptions at HVBAR, not at VBAR, and HVBAR is undefined after reset. "
        "vc4lab starts with 0, and there is code at that vector, so the program continues; a board "
        "may behave differently.",
        "ARM Architecture Reference Manual ARMv7-A, B1.8.1 (vectors), B4.1.59 (HVBAR)",
        "Leave HYP mode with eret at the start, or set HVBAR (mcr p15, 4, rt, c12, c0, 0).",
        Severity.WARNING,
    ),
    Entry(
        "SOC-047",
        "Exception return that HYP mode does not have",
        "In HYP mode subs pc, lr and ldm with ^ are undefined instructions. Handlers written for "
        "IRQ or supervisor mode end with them.",
        "ARM Architecture Reference Manual ARMv7-A, B9.3.5 (eret), B9.3.19 (subs pc, lr)",
        "Return with eret, or leave HYP mode at the start, so that interrupts are taken in IRQ mode.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-048",
        "Exception storm",
        "A core takes one exception after another and does nothing else: the instruction at the "
        "vector itself faults, or the handler returns to the faulting instruction without having "
        "repaired the cause. The core is stopped; the run ends if no other core works.",
        "ARM Architecture Reference Manual ARMv7-A, B1.8",
        "Check the named instruction and the handler: a handler that cannot repair the cause "
        "should report it and stop. A vector that faults was often never written, or is not "
        "mapped.",
    ),
    Entry(
        "SOC-049",
        "Interrupt that is never cleared",
        "The handler returns while the interrupt is still pending, and the next one is taken "
        "before the program can execute a single instruction. A board makes no progress either.",
        "BCM2835 ARM Peripherals 7.2; BCM2836 ARM-local peripherals 4.10",
        "Clear the cause in the handler: the bit of the system timer's CS, the UART's ICR, GPEDS, "
        "the timer's compare value or enable bit, the core mailbox.",
    ),
    Entry(
        "SOC-090",
        "Unsupported VPU instruction",
        "Execute code runs a function on the VideoCore's own processor (VPU). vc4lab executes "
        "scalar instructions only: no vector instructions, interrupts, sleep or privileged modes, "
        "and nothing that the public descriptions leave open. The function ends there and the tag "
        "stays unanswered; its stores up to then remain.",
        _VPU,
        "Check the named address and word: an address that is not the function's first "
        "instruction, or ARM code, also gives unknown instructions.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-091",
        "Fault in a VPU function",
        "The function divides by zero, accesses an empty or misaligned address, or leaves the RAM; "
        "or there is no room for its stack. On a board most of these are exceptions of the VPU, "
        "and the firmware stops. The VPU sees RAM at its bus addresses (0x00000000, 0x40000000, "
        "0x80000000, 0xC0000000 and up) and the peripherals at 0x7E000000.",
        _VPU,
        "Check the instruction at the named address. Pass bus addresses to the function.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-092",
        "VPU function that does not return",
        "The function called by execute code has executed a very large number of instructions "
        "without returning. On a board the firmware would wait forever and answer no further "
        "message. vc4lab ends it, and answers neither this tag nor a later execute code.",
        _VPU,
        "Return with b lr or ldm pc, and check that loops end. A device that the function waits "
        "for must become ready by itself, since the ARM is stopped meanwhile.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-093",
        "A data cache is enabled but not modelled",
        "The program has set SCTLR.C with its MMU on. On a board the V3D, the DMA and the firmware "
        "read memory, not the ARM's cache, and see what a core has written only after it was "
        "cleaned. In vc4lab every reader sees new bytes at once, so a program that forgets to "
        "clean looks correct.",
        "ARM Architecture Reference Manual ARMv7-A, B2.2 caches and memory hierarchy",
        "Run it with `--caches check`, which reports what reads old bytes and which instruction "
        "wrote the new ones.",
        Severity.HINT,
    ),
    Entry(
        "SOC-094",
        "A display list of the HVS is damaged",
        "The HVS composes the planes of a display list: words with VALID set, each plane with its "
        "length, up to a word with END. This list leaves the memory of lists, has a word without "
        "VALID, or a plane that is too short. What comes before is shown.",
        "Linux, drivers/gpu/drm/vc4/vc4_plane.c and vc4_hvs.c",
        "End the list with 0x80000000, write it before DISPLISTx, and leave it alone while it is "
        "shown (DISPLACTx).",
        Severity.WARNING,
    ),
    Entry(
        "SOC-095",
        "A plane is not shown as the HVS shows it",
        "The address is that of the plane's first word in the memory of display lists. vc4lab "
        "composes planes of 8 to 32 bits of red, green and blue, linear or in T-tiles (16 and 32 "
        "bits), and planes of brightness and colour (YUV 4:2:0 and 4:2:2), linear or in columns "
        "(SAND). Palettes, other layouts, and planes whose pixels are not in RAM are left out. The "
        "message names what is missing; it comes once for each.",
        "Linux, drivers/gpu/drm/vc4/vc4_plane.c and vc4_regs.h",
        "Nothing is wrong with the program unless its pixels are not in RAM. To see the picture, "
        "give the plane a format and a layout that Linux's vc4.ko uses, too.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-096",
        "A part of the display is not modelled",
        "The program asks the display for something that vc4lab does not do: a test picture, a "
        "turned or dithered one or a single field from the writer of composed pictures (TXP), or "
        "colour bars from the encoder of analogue video (VEC). The plain picture is written or "
        "shown instead.",
        "Linux, drivers/gpu/drm/vc4/vc4_txp.c and vc4_vec.c",
        "Nothing is wrong with the program. Have the picture written or shown without that.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-097",
        "A composed picture cannot be written",
        "TXP takes a picture of the HVS's channel 2 and writes it to memory. Here that channel is "
        "off, the two do not have the same size, the format is none or cannot be tiled, or the "
        "picture does not fit into RAM. Where the channel is off, TXP stays busy and no "
        "interrupt comes; of two sizes the common part is written; else nothing is.",
        "Linux, drivers/gpu/drm/vc4/vc4_txp.c",
        "Enable channel 2 (DISPCTRL2) with the size of DIM before GO, and give DST_PTR the bus "
        "address of a buffer of DST_PITCH bytes for each line.",
        Severity.WARNING,
    ),
]
