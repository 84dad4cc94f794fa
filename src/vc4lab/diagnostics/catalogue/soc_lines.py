"""Messages about the serial line and the timers."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_PERIPHERALS = "BCM2835 ARM Peripherals"

ENTRIES = [
    Entry(
        "SOC-130",
        "Serial output faster than the line",
        "More bytes were written to a UART than its transmit FIFO holds (16 in the PL011 with LCRH "
        "bit 4, else 1; 8 in the mini UART), quicker than the line takes them and without a look "
        "at the status register. On a board the excess is lost, so a text comes with holes in it. "
        "vc4lab shows everything.",
        "PL011 Technical Reference Manual 2.4.2, 3.3.3 (UARTFR.TXFF); "
        + _PERIPHERALS
        + " 2.2.2 (AUX_MU_LSR_REG)",
        "Before each byte wait until FR bit 5 (TXFF) is 0, or LSR bit 5 of the mini UART is 1.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "SOC-131",
        "Unusual baud rate",
        "The PL011's rate is its clock divided by 16 and by IBRD + FBRD/64, and this is none that "
        "terminals offer. The firmware's clock has 48 MHz since 2016 and had 3 MHz before, for "
        "which many published programs are written.",
        "PL011 Technical Reference Manual 3.3.5, 3.3.6; Raspberry Pi documentation, config.txt "
        "(init_uart_clock)",
        "For 115200 baud at 48 MHz write IBRD = 26, FBRD = 3; or init_uart_clock=3000000 into "
        "config.txt; or set the clock by the mailbox (tag 0x38002, clock 2).",
        Severity.HINT,
    ),
    Entry(
        "SOC-132",
        "A timer channel of the firmware",
        "The VideoCore's firmware uses the compare registers 0 and 2 of the system timer for its "
        "own scheduling. A program that writes them, or clears their matches, disturbs it, and "
        "finds its own times overwritten. vc4lab has all four for the program.",
        "Corrections of the BCM2835 ARM Peripherals (elinux.org), p. 172; Linux's "
        "bcm2835_timer.c takes channel 3",
        "Use channel 1 or 3: C1 at P + 0x3010 with interrupt 1, C3 at P + 0x3018 with interrupt 3.",
        Severity.WARNING,
    ),
]
