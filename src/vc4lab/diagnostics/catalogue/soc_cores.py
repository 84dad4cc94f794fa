"""Messages about the processors of the board: exceptions, HYP mode, storms, the VPU."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_MAILBOX = "Raspberry Pi firmware wiki, mailbox property interface"
_VPU = _MAILBOX + ", execute code (0x00030010); VideoCore IV Programmers Manual (hermanhermitage)"

ENTRIES = [
    Entry(
        "SOC-040",
        "The program hangs",
        "Nothing that could be seen from outside has happened for a long time: no frame, no "
        "output, no message. The sentence names who waits for what.",
        "vc4lab boot --help",
        "Look at what the named register or unit waits for: often a counter that was not cleared, "
        "a job that was not started, or an interrupt that never comes.",
    ),
    Entry(
        "SOC-042",
        "An exception without a handler",
        "The CPU took an exception (undefined instruction, abort, supervisor call) and there is "
        "no code at its vector, so the program is lost. On a board it would run into whatever "
        "lies there.",
        "ARM Architecture Reference Manual ARMv7-A, B1.8",
        "Look at the instruction named: often data run as code, a wild pointer, or floating "
        "point used before it was enabled. In HYP mode (Pi 2 and 3, AArch32): leave it at the "
        "beginning by eret, or set HVBAR.",
    ),
    Entry(
        "SOC-043",
        "The CPU runs through empty RAM",
        "The program jumped, or returned, to a place where there is nothing but zeros. They "
        "execute as no-operations, so a board would run on until it meets something else.",
        "ARM Architecture Reference Manual ARMv7-A, A8 (andeq r0, r0, r0)",
        "Look for a return address that was overwritten, a wild function pointer, or a stack that "
        "was never set.",
    ),
    Entry(
        "SOC-044",
        "SPSR_hyp by its name in HYP mode",
        "A mode's own SPSR cannot be named by mrs and msr in that mode: what they do then is "
        "unpredictable, and a core may take them as undefined. Here they do what was meant.",
        "ARM Architecture Reference Manual ARMv7-A, B9.2.3 (banked registers)",
        "Write msr spsr_cxsf instead of msr spsr_hyp.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-045",
        "A change of mode that HYP mode does not allow",
        "The firmware enters AArch32 programs of a Pi 2 or 3 in HYP mode, which cps and msr cpsr "
        "cannot leave. A Cortex-A7 (Pi 2) stays where it is, so what follows (stack pointers of "
        "other modes, mostly) happens to HYP mode; a Cortex-A53 (Pi 3) takes the next instruction "
        "as undefined.",
        "ARM Architecture Reference Manual ARMv7-A, B9.3.2 (cps); ARMv8-A, G1.9 (illegal return "
        "and change of state)",
        "Leave HYP mode first: put the new CPSR into spsr_cxsf and the address into ELR_hyp, then "
        "eret. With kernel_old=1 in config.txt the firmware enters in supervisor mode, at address "
        "0; `--firmware 2015` does as the firmware of that year.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-046",
        "An exception in HYP mode, but HVBAR was never set",
        "Exceptions of HYP mode go to HVBAR, not to VBAR, and HVBAR's value at the start is "
        "unknown. Here it is 0, and something stands at that vector, so the program goes on; "
        "a board may do something else.",
        "ARM Architecture Reference Manual ARMv7-A, B1.8.1 (vectors), B4.1.59 (HVBAR)",
        "Leave HYP mode by eret at the beginning, or set HVBAR (mcr p15, 4, rt, c12, c0, 0).",
        Severity.WARNING,
    ),
    Entry(
        "SOC-047",
        "An exception return that HYP mode does not have",
        "In HYP mode subs pc, lr and ldm with ^ are undefined instructions; handlers written for "
        "IRQ or supervisor mode end so.",
        "ARM Architecture Reference Manual ARMv7-A, B9.3.5 (eret), B9.3.19 (subs pc, lr)",
        "Return by eret, or leave HYP mode at the beginning, so that interrupts go to IRQ mode.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-048",
        "A storm of exceptions",
        "A core takes one exception after the other and does nothing else: the instruction at the "
        "vector faults itself, or the handler returns to the instruction that has faulted and "
        "has mended nothing. The core is left alone; the run ends if no other core works.",
        "ARM Architecture Reference Manual ARMv7-A, B1.8",
        "Look at the instruction named and at the handler: one that cannot mend anything should "
        "say so and stop. A vector that faults is often one that was never written, or not mapped.",
    ),
    Entry(
        "SOC-049",
        "An interrupt that is never cleared",
        "The handler returns, the line still asks, and the next interrupt is taken before the "
        "program can do a single instruction. On a board it stands still as well.",
        "BCM2835 ARM Peripherals 7.2; BCM2836 ARM-local peripherals 4.10",
        "Clear the cause in the handler: the bit of the system timer's CS, ICR of the UART, GPEDS, "
        "the timer's compare value or enable bit, the core mailbox.",
    ),
    Entry(
        "SOC-090",
        "An instruction of the VPU that is not done",
        "Execute code runs a function on VideoCore's own processor. Here it does scalar "
        "instructions only: no vector instructions, interrupts, sleep or privileged modes, and "
        "nothing of which the public descriptions say too little. The function is ended there, and "
        "the tag stays unanswered; what the function has stored until then is stored.",
        _VPU,
        "Look at the address and the word named: an address that is not the function's first "
        "instruction, and ARM code, look like unknown instructions as well.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-091",
        "A function on the VPU goes wrong",
        "The function divides by zero, uses an address where nothing is or that is not aligned to "
        "the size of the access, or goes on where there is no RAM; or there is no room for its "
        "stack. On a board most of that is an exception of the VPU, and the firmware stands still. "
        "The VPU sees RAM at its bus addresses (0x00000000, 0x40000000, 0x80000000, 0xC0000000 "
        "and up) and the peripherals at 0x7E000000.",
        _VPU,
        "Look at the instruction at the address named. Pass bus addresses to the function.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-092",
        "A function on the VPU that does not return",
        "The function called by execute code has executed very many instructions and has not "
        "returned. On a board the firmware would wait for ever and answer no message any more. "
        "Here it is ended, and neither this tag nor a later execute code is answered.",
        _VPU,
        "Return by b lr or ldm pc, and see that loops end; a device that is waited for must become "
        "ready by itself, since the ARM stands still meanwhile.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-093",
        "A data cache is on, and none is modelled",
        "The program has set SCTLR.C, and its MMU is on. On a board the V3D, the DMA and the "
        "firmware read memory and not the ARM's cache, so they see what a core has written only "
        "after it was cleaned; here all cores see the same bytes at once, and a program that "
        "forgets to clean looks right.",
        "ARM Architecture Reference Manual ARMv7-A, B2.2 caches and memory hierarchy",
        "Run it with `--caches check`, which reports who reads old bytes and which instruction "
        "wrote the new ones.",
        Severity.HINT,
    ),
]
