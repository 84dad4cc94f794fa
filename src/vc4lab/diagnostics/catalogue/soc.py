"""Messages about the board around the V3D: bus, mailbox, framebuffer, CPU."""

from __future__ import annotations

from vc4lab.diagnostics.catalogue import soc_accesses, soc_cores, soc_lines, soc_pictures
from vc4lab.diagnostics.entry import Entry, Severity

_PERIPHERALS = "BCM2835 ARM Peripherals"
_SD = "SD Physical Layer Simplified Specification 3.01"
_MAILBOX = "Raspberry Pi firmware wiki, mailbox property interface"

ENTRIES = [
    Entry(
        "SOC-001",
        "A peripheral that vc4lab does not model",
        "The program accesses a part of the peripheral space that vc4lab does not model. Reads "
        "return 0, writes are ignored.",
        _PERIPHERALS + " 1.2",
        "None needed if the program continues. If it waits for this peripheral, it will hang.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-002",
        "The ARM accesses an empty address",
        "Apart from the RAM, the peripherals and the per-core block, the ARM's physical address "
        "space is empty. The usual cause is a pointer that was not initialised.",
        _PERIPHERALS + " 1.2.2",
        "Check the code near the address that the message names.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-003",
        "The ARM uses a bus address",
        "Addresses from 0x80000000 up are those by which the VideoCore and the DMA address the "
        "RAM. The ARM finds nothing there: writes are lost and the screen stays black. Most often "
        "this is the framebuffer's address as the mailbox returned it.",
        _PERIPHERALS + " 1.2.4",
        "Clear the two top bits of addresses from the mailbox (address & 0x3FFFFFFF). Registers "
        "are at the board's peripheral base, not at 0x7E000000.",
    ),
    Entry(
        "SOC-010",
        "Mailbox channel without an answer",
        "vc4lab answers channels 0 (power), 1 (framebuffer) and 8 (property tags). The channel is "
        "in the low four bits of the word, so a misaligned buffer address selects another channel. "
        "Mailbox 0 carries answers only: what the ARM writes to its register goes nowhere.",
        "Raspberry Pi firmware wiki, mailboxes",
        "Align the message to 16 bytes, add the channel number, and write it to mailbox 1 (P + 0xB8A0).",
        Severity.WARNING,
    ),
    Entry(
        "SOC-011",
        "Invalid mailbox message",
        "The message's address, its size or the size of a tag is wrong: the message lies outside "
        "RAM, or a tag is longer than the message. The firmware answers with the error code "
        "0x80000001.",
        _MAILBOX,
        "The first word is the size of the whole message in bytes; each tag has three words and "
        "its value buffer; a word of 0 ends the tags.",
    ),
    Entry(
        "SOC-012",
        "Unknown property tag",
        "vc4lab does not know the tag. Its response bit stays 0, as with firmware that does not know it.",
        _MAILBOX,
        "Check the tag's number, and test bit 31 of its third word before using the value.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-013",
        "Property message without an end tag",
        "The message ends without a word of 0 after its tags. The firmware accepts this.",
        _MAILBOX,
        "End the tags with a word of 0, and count it in the size.",
        Severity.HINT,
    ),
    Entry(
        "SOC-014",
        "A tag's value buffer is too small",
        "The second word of a tag is the size of its value buffer, which holds the request and "
        "then the answer. The firmware cuts the answer off at that size: what follows in memory "
        "is left as it was, and the response code says how long the answer would be.",
        _MAILBOX,
        "Give the buffer the size of the request or of the answer, whichever is larger, and fill "
        "it up with zeros.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-020",
        "Unsupported display setting",
        "Depths are 1, 2, 4, 8, 16, 24 and 32 bits, sides are at most 4096 pixels, and the visible "
        "part must lie inside the virtual picture. The nearest possible value is used and returned "
        "in the answer.",
        _MAILBOX + ", frame buffer",
        "Use the values that the set tag returns.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-021",
        "No memory for the framebuffer",
        "The picture does not fit into the VideoCore's part of the RAM. The firmware answers with address 0.",
        _MAILBOX + ", allocate buffer",
        "Ask for a smaller picture, or raise gpu_mem= in config.txt (MiB).",
    ),
    Entry(
        "SOC-022",
        "Invalid mouse cursor",
        "The firmware accepts cursors of 16 x 16 to 64 x 64 pixels in RAM with the hot spot "
        "inside. It answers 1 (invalid) to this one.",
        _MAILBOX + ", set cursor info (0x00008010)",
        "Check width, height, the address of the pixels (a bus address) and the hot spot.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-023",
        "No VideoCore memory left",
        "Allocating memory by property tag failed: the size or alignment is invalid, or gpu_mem is "
        "too small. The firmware answers with handle 0.",
        _MAILBOX + ", allocate memory",
        "Raise gpu_mem= in config.txt (MiB), and test the handle.",
    ),
    Entry(
        "SOC-030",
        "The V3D is used before it is powered on",
        "Until the program asks the firmware to enable it, the V3D has neither power nor clock: "
        "its registers read 0xDEADBEEF and ignore writes.",
        _MAILBOX + ", enable QPU (0x00030012) or set domain state (0x00038030)",
        "Send the property tag 0x00030012 with value 1 first, then check that V3D_IDENT0 reads 0x02443356.",
    ),
    Entry(
        "SOC-050",
        "Misaligned DMA control block",
        "Control blocks start at multiples of 32 bytes. The channel ignores the low five bits, so "
        "it reads from another address than intended. NEXTCONBK with none but these set ends the "
        "chain, as 0 does.",
        _PERIPHERALS + " 4.2.1.2",
        "Align the control block to 32 bytes.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-051",
        "DMA access to an empty address",
        "The DMA uses bus addresses: peripherals are at 0x7E000000, RAM is at its aliases (best "
        "0xC0000000, on a Pi 1 0x40000000). The channel stops and sets the error bit in CS.",
        _PERIPHERALS + " 1.2.4, 4.2",
        "Translate addresses before writing them to a control block.",
    ),
    Entry(
        "SOC-052",
        "A disabled DMA channel is started",
        "A channel whose bit in the global ENABLE register is 0 does nothing.",
        _PERIPHERALS + " 4.2.1.2, ENABLE",
        "Set the channel's bit at offset 0xFF0 of the DMA first.",
    ),
    Entry(
        "SOC-053",
        "DMA control blocks form a loop",
        "A chain of control blocks leads back to an earlier block, and none of them waits for a "
        "device, so it copies until the channel is stopped or reset.",
        _PERIPHERALS + " 4.2.1.2, NEXTCONBK",
        "Set the last block's NEXTCONBK to 0 if the loop is not intended.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-054",
        "The mini UART is not enabled",
        "Until bit 0 of AUX_ENABLES is set, the mini UART neither sends nor receives.",
        _PERIPHERALS + " 2.1.1, AUX_ENABLES",
        "Write 1 to AUX_ENABLES (offset 0x215004) first.",
    ),
    Entry(
        "SOC-055",
        "Register write without the password",
        "The registers of power management and clock manager ignore writes without 0x5A in the top byte.",
        _PERIPHERALS + " 6.3, clock manager",
        "OR 0x5A000000 into the value.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-056",
        "Audio samples are lost",
        "The PWM's FIFO holds 16 words. Words written to a full FIFO are lost.",
        _PERIPHERALS + " 9.5",
        "Wait until bit 0 of PWM_STA is 0, or let the DMA write at the PWM's pace. Check that the "
        "PWM clock runs and that CTL has the FIFO bit and the enable bit set.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-057",
        "No device is attached",
        "vc4lab models the registers of SPI, I2C, PCM and USB, but no devices on them: SPI reads "
        "zeros, I2C addresses are not acknowledged, the USB root port is empty.",
        _PERIPHERALS + " 3, 8, 10, 15",
        "None; programs that need such a device will not find it.",
        Severity.NOTE,
    ),
    Entry(
        "SOC-058",
        "Serial output that would not reach the board's header",
        "Serial output reaches the header only if the UART is enabled and GPIO 14 and 15 are set "
        "to its function: alternate function 0 for the PL011, 5 for the mini UART. vc4lab shows "
        "the output in any case.",
        _PERIPHERALS + " 6.2 (alternative functions), 13.4 CR; 2.2 for the mini UART",
        "Select the function in GPFSEL1 and enable the UART; or write enable_uart=1 into "
        "config.txt, which makes the firmware do both (on a Pi 3 for the mini UART).",
        Severity.HINT,
    ),
    Entry(
        "SOC-059",
        "Floating-point instruction while it is disabled",
        "At EL1 and EL0 floating-point and NEON instructions cause exceptions until CPACR_EL1 "
        "enables them. Compilers also use these registers for copying and for variable arguments, "
        "so a program may stop in a function without any floating-point arithmetic.",
        "ARM Architecture Reference Manual ARMv8-A, D13.2.29 CPACR_EL1",
        "Set bits 21:20 of CPACR_EL1 when the program starts (mov x0, #3 << 20; msr cpacr_el1, x0; "
        "isb), or compile with -mgeneral-regs-only.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-060",
        "No SD card is inserted",
        "The program uses the EMMC controller, but the slot is empty because a bare kernel image "
        "was booted. Commands get no answer.",
        _SD + " 4.2",
        "Boot the folder or the card image, or insert a card with --card FOLDER_OR_IMAGE.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-061",
        "The SD card does not answer",
        "A card answers only the commands that its state allows. Others time out in the controller "
        "(bit 16 of INTERRUPT).",
        _SD + " 4.8, table 4-35",
        "Compare the order of commands with the card's states. After a transfer of several blocks "
        "send CMD12, or announce their number with CMD23.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-062",
        "Access beyond the end of the SD card",
        "The program reads or writes a block that the card does not have. The card answers with "
        "OUT_OF_RANGE (bit 31) and transfers nothing.",
        _SD + " 4.10.1",
        "Address an SDHC card by block number, not by byte. Otherwise the card's file system is "
        "larger than its image.",
    ),
    Entry(
        "SOC-063",
        "Misuse of an SD card controller",
        "The program accessed a register at the wrong time, or set one up so that it waits for an "
        "event that cannot happen. The message names the register.",
        _PERIPHERALS + " 5",
        "Check how the program uses the named register.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-065",
        "The SD card's image or folder cannot be read",
        "The image or folder that serves as the card, or a file in it, cannot be read. The program "
        "sees an empty slot or a card error.",
        "vc4lab boot --help",
        "Check that it exists and is readable.",
    ),
    Entry(
        "SOC-066",
        "Too much was written to the SD card",
        "vc4lab keeps writes to the card in memory, at most 512 MiB. The card reports an error for "
        "further writes.",
        "vc4lab boot --help",
        "None; a program that fills the card cannot be run to its end.",
    ),
    Entry(
        "SOC-067",
        "A file is left out of the SD card",
        "The card is made from a folder. A FAT32 card cannot hold everything that a folder can, "
        "and files from outside the folder are not included.",
        "docs/talking.md",
        "Rename or copy the file, or make a card image.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-068",
        "An interrupt is enabled in the wrong register",
        "A device asks for an interrupt that is not enabled, and the same bit is set in another "
        "of the three enable registers, where it belongs to a line that has never asked. Lines 0 "
        "to 31 are enabled in ENABLE_IRQS_1, 32 to 63 in ENABLE_IRQS_2, those of the ARM (its "
        "timer, its mailbox) in ENABLE_BASIC_IRQS.",
        _PERIPHERALS + " 7.5",
        "Write the bit to the register that the message names.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-080",
        "ARM address given to the VideoCore",
        "The framebuffer structure of mailbox channel 1 is passed without a bus alias. The "
        "VideoCore then writes its answer through its own caches, and the ARM may read the old "
        "bytes. vc4lab accepts any alias.",
        "Raspberry Pi firmware wiki, mailbox framebuffer interface",
        "Add 0x40000000 (Pi 1, Zero) or 0xC0000000 (Pi 2, 3) to the address, or use property tags.",
        Severity.HINT,
    ),
    Entry(
        "SOC-081",
        "The firmware and the program both use the V3D",
        "The V3D has one set of list threads and one queue of user programs. The program asks the "
        "firmware to use them (execute QPU, VCHIQ) while it also uses them through registers. Each "
        "would stop or overwrite the other's work.",
        _MAILBOX + ", execute QPU (0x00030011)",
        "Wait until your own lists and programs have finished, or start all of them in one way "
        "only. On a card with Linux, do not load the vc4 overlay together with bare-metal code.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-082",
        "Cut-down firmware",
        "With gpu_mem=16 the boot loader starts start_cd.elf, which leaves out codecs and 3D. "
        "Whether it can power the V3D on is not documented; in vc4lab it can.",
        "Raspberry Pi documentation, config.txt, gpu_mem",
        "Set gpu_mem=32 or more in config.txt.",
        Severity.HINT,
    ),
    Entry(
        "SOC-083",
        "The framebuffer's pitch is ignored",
        "Rows of the framebuffer are pitch bytes apart, which can be more than width x bytes per "
        "pixel. The program wrote to the bytes between rows, so it assumes a smaller pitch, and "
        "the picture comes out slanted.",
        _MAILBOX + ", get pitch (0x00040008)",
        "Ask for the pitch, and compute addresses as y * pitch + x * bytes.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-084",
        "The pixel order is not set",
        "The program uses 24 or 32 bits per pixel and never sets the pixel order. The firmware's "
        "default differs between boards and versions, so red and blue may be exchanged.",
        _MAILBOX + ", set pixel order (0x00048006)",
        "Set it: 1 RGB (byte 0 is red, as the V3D's RGBA8888), 0 BGR. `vc4lab boot --both-orders "
        "--screenshot F.png` shows both readings side by side.",
        Severity.HINT,
    ),
    Entry(
        "SOC-085",
        "The V3D's frame does not fit the framebuffer",
        "The rendering mode (113) stores into the framebuffer in another format than the display "
        "reads: other bits per pixel, another row length, or tiles.",
        "AG100-R p. 72, record 113; " + _MAILBOX + ", get pitch",
        "Give record 113 the framebuffer's width, a format of its depth, and raster layout. Choose "
        "a width whose rows are a multiple of 32 bytes.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-086",
        "Buffer overrun",
        "With --strict a guard zone follows everything that the firmware allocates. Something "
        "wrote into one, past the end of the framebuffer or of memory allocated by mailbox. On a "
        "board this overwrites whatever is there.",
        _MAILBOX + ", allocate memory (0x0003000C), allocate buffer (0x00040001)",
        "Compare sizes: rows are pitch bytes apart, and tiled surfaces are padded to whole tiles.",
    ),
    Entry(
        "SOC-087",
        "Peripheral address of another board",
        "The program wrote to 0x20000000, where a Pi Zero or 1 has its peripherals. On a Pi 2 or 3 "
        "this is RAM: nothing happens, and reads return what was written.",
        _PERIPHERALS + " 1.2.3; BCM2836 ARM-local peripherals",
        "Use the base 0x3F000000, or boot it with --board pi1 or zero.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-088",
        "Firmware service not available",
        "vc4lab does not implement VCHIQ, through which a board's firmware offers its own GL, "
        "sound and camera. The request is refused.",
        _MAILBOX + ", VCHIQ init (0x00048010)",
        "Use the hardware directly: the V3D, the PWM, the framebuffer. Programs that test the "
        "answer see the refusal.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-089",
        "Fully transparent picture",
        "With alpha mode 0 a pixel is opaque if its alpha is 0, with mode 1 if it is 255. The "
        "picture's alpha values are the opposite, so the black screen below shows: where "
        "config.txt says framebuffer_ignore_alpha=0, or with firmware of 2015 (the unknown "
        "framebuffer_alpha).",
        _MAILBOX + ", set alpha mode (0x00048007)",
        "Set alpha mode 2 (ignored), or write the other alpha values into the pixels.",
        Severity.WARNING,
    ),
    *soc_cores.ENTRIES,
    *soc_accesses.ENTRIES,
    *soc_lines.ENTRIES,
    *soc_pictures.ENTRIES,
]
