"""Messages about the board around the V3D: bus, mailbox, framebuffer, CPU."""

from __future__ import annotations

from vc4lab.diagnostics.catalogue import soc_cores
from vc4lab.diagnostics.entry import Entry, Severity

_PERIPHERALS = "BCM2835 ARM Peripherals"
_SD = "SD Physical Layer Simplified Specification 3.01"
_MAILBOX = "Raspberry Pi firmware wiki, mailbox property interface"

ENTRIES = [
    Entry(
        "SOC-001",
        "A peripheral that is not built",
        "The program uses a part of the peripheral space that this version does not model. Reads "
        "give 0, writes are ignored.",
        _PERIPHERALS + " 1.2",
        "Nothing to do if the program goes on; if it waits there, it will hang.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-002",
        "The ARM uses an address where nothing is",
        "Beyond the RAM, the peripherals and the per-core block the ARM's physical address space "
        "is empty. Often a pointer was not initialised.",
        _PERIPHERALS + " 1.2.2",
        "Look at the code near the address named.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-003",
        "A bus address used by the ARM",
        "Addresses from 0x80000000 on are how the VideoCore and DMA name the RAM. The ARM finds "
        "nothing there: writes are lost, the screen stays black. Most often this is the "
        "framebuffer's address as the mailbox gave it.",
        _PERIPHERALS + " 1.2.4",
        "Clear the two top bits of addresses that come from the mailbox (address & 0x3FFFFFFF); "
        "registers are at the peripheral base of the board, not at 0x7E000000.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-010",
        "A mailbox channel without an answer",
        "Channels 0 (power), 1 (framebuffer) and 8 (property tags) are answered. The channel is "
        "in the low four bits of the word, so an unaligned buffer address looks like another "
        "channel.",
        "Raspberry Pi firmware wiki, mailboxes",
        "Align the message to 16 bytes and add the channel number.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-011",
        "A damaged mailbox message",
        "The message's address, its size or the size of one of its tags cannot be right: it lies "
        "outside RAM, or a tag is longer than its message. The answer is the error code "
        "0x80000001.",
        _MAILBOX,
        "The first word is the size of the whole message in bytes, each tag is three words and "
        "its value buffer, a word of 0 ends it.",
    ),
    Entry(
        "SOC-012",
        "An unknown property tag",
        "The tag is not in the table; its response bit stays 0, as with firmware that does not "
        "know it.",
        _MAILBOX,
        "Check the tag's number; test bit 31 of its third word before using the value.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-013",
        "A property message without end tag",
        "The message is used up before a word of 0 ended its tags. The firmware accepts that.",
        _MAILBOX,
        "Let the message end with a word of 0 and count it in the size.",
        Severity.HINT,
    ),
    Entry(
        "SOC-020",
        "The display cannot do that",
        "Depths are 1, 2, 4, 8, 16, 24 and 32 bits, sides at most 4096 pixels, the visible part "
        "lies inside the virtual picture. The nearest possible value is used; the answer says so.",
        _MAILBOX + ", frame buffer",
        "Read back what the set tag answers.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-021",
        "No memory for the framebuffer",
        "The picture does not fit into the VideoCore's part of the RAM. The address answered is 0.",
        _MAILBOX + ", allocate buffer",
        "Ask for a smaller picture or set gpu_mem= in config.txt to more MiB.",
    ),
    Entry(
        "SOC-022",
        "A mouse cursor that makes no sense",
        "The firmware takes a cursor of at least 16 x 16 and at most 64 x 64 pixels in RAM, its "
        "hot spot inside; it says 1 (invalid) to this one.",
        _MAILBOX + ", set cursor info (0x00008010)",
        "Check width, height, the address of the pixels (a bus address) and the hot spot.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-023",
        "No VideoCore memory left",
        "Allocating memory by property tag failed: size or alignment make no sense, or gpu_mem is "
        "too small. The handle answered is 0.",
        _MAILBOX + ", allocate memory",
        "Set gpu_mem= in config.txt to more MiB, and test the handle.",
    ),
    Entry(
        "SOC-030",
        "The V3D is used before it has power",
        "Until the firmware is asked for it, the V3D has neither power nor clock; its registers "
        "read 0xDEADBEEF and swallow writes.",
        _MAILBOX + ", enable QPU (0x00030012) or set domain state (0x00038030)",
        "Send the property tag 0x00030012 with value 1 first, then check that V3D_IDENT0 reads "
        "0x02443356.",
    ),
    Entry(
        "SOC-050",
        "A DMA control block that is not aligned",
        "Control blocks begin at multiples of 32 bytes; the channel ignores the low five bits and "
        "reads another block than the one that was meant.",
        _PERIPHERALS + " 4.2.1.2",
        "Align the control block to 32 bytes.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-051",
        "A DMA address where nothing is",
        "The DMA uses bus addresses: peripherals are at 0x7E000000, RAM under its aliases (best "
        "0xC0000000, on a Pi 1 0x40000000). The channel stops with the error bit in CS.",
        _PERIPHERALS + " 1.2.4, 4.2",
        "Translate addresses before they go into a control block.",
    ),
    Entry(
        "SOC-052",
        "A DMA channel is started that is not enabled",
        "A channel whose bit in the global ENABLE register is 0 does nothing.",
        _PERIPHERALS + " 4.2.1.2, ENABLE",
        "Set the channel's bit at offset 0xFF0 of the DMA first.",
    ),
    Entry(
        "SOC-053",
        "DMA control blocks in a circle",
        "A chain of linked blocks comes back to an earlier one, and no block of it waits for a "
        "device, so it copies for ever. It ends only when the channel is stopped or reset.",
        _PERIPHERALS + " 4.2.1.2, NEXTCONBK",
        "Let the last block's NEXTCONBK be 0, if the circle is not meant.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-054",
        "The mini UART is not enabled",
        "Until bit 0 of AUX_ENABLES is set the mini UART neither sends nor receives.",
        _PERIPHERALS + " 2.1.1, AUX_ENABLES",
        "Write 1 to AUX_ENABLES (offset 0x215004) first.",
    ),
    Entry(
        "SOC-055",
        "A write without the password",
        "The registers of power management and clock manager take only writes with 0x5A in the "
        "top byte.",
        _PERIPHERALS + " 6.3, clock manager",
        "Or 0x5A000000 into the value.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-056",
        "A sample is lost",
        "The PWM's FIFO holds 16 words; who writes more before they are played loses them.",
        _PERIPHERALS + " 9.5",
        "Wait until bit 0 of PWM_STA is 0, or let the DMA write at the PWM's pace; check that the "
        "PWM clock runs and that CTL has the FIFO's and the enable bit set.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-057",
        "Nothing is attached there",
        "SPI, I2C, PCM and USB have registers here, but no device on them: SPI reads zeros, I2C "
        "addresses are not acknowledged, the USB root port is empty.",
        _PERIPHERALS + " 3, 8, 10, 15",
        "None; programs that need such a device will not find it.",
        Severity.NOTE,
    ),
    Entry(
        "SOC-058",
        "A serial line that a board's header would not show",
        "What is sent comes out at the header only if the UART is enabled and GPIO 14 and 15 have "
        "its function: alternate function 0 for the PL011, 5 for the mini UART. Here it is shown "
        "in any case.",
        _PERIPHERALS + " 6.2 (alternative functions), 13.4 CR; 2.2 for the mini UART",
        "Select the function in GPFSEL1 and enable the UART; or put enable_uart=1 into config.txt, "
        "which makes the firmware do both (on a Pi 3 for the mini UART).",
        Severity.HINT,
    ),
    Entry(
        "SOC-059",
        "Floating point that is not allowed",
        "At EL1 and EL0 the instructions of floating point and NEON are exceptions until CPACR_EL1 "
        "allows them. Compilers use these registers for copying and for variable arguments, too: "
        "a program may stop in a function without any float.",
        "ARM Architecture Reference Manual ARMv8-A, D13.2.29 CPACR_EL1",
        "Set bits 21:20 of CPACR_EL1 at the program's beginning (mov x0, #3 << 20; msr cpacr_el1, "
        "x0; isb), or compile with -mgeneral-regs-only.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-060",
        "There is no SD card",
        "The program talks to the EMMC controller, but the slot is empty: it was booted from a "
        "bare kernel image. Commands are not answered, as without a card.",
        _SD + " 4.2",
        "Boot the folder or the card image, or put a card in with --card FOLDER_OR_IMAGE.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-061",
        "The SD card does not answer",
        "A card answers only the commands that its state allows; others run into the controller's "
        "time-out (bit 16 of INTERRUPT).",
        _SD + " 4.8, table 4-35",
        "Compare the order of commands with the card's states; after several blocks send CMD12, "
        "or announce their number by CMD23.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-062",
        "Beyond the end of the SD card",
        "The program reads or writes a block that the card does not have. The card answers with "
        "OUT_OF_RANGE (bit 31) and sends or takes nothing.",
        _SD + " 4.10.1",
        "An address of an SDHC card is the number of a block, not of a byte. Otherwise the file "
        "system on the card is larger than its image.",
    ),
    Entry(
        "SOC-063",
        "A mistake in using the EMMC controller",
        "The sentence names a register that was written or read at the wrong time, or set up so "
        "that the program waits for what will never come.",
        _PERIPHERALS + " 5",
        "Look at the register named.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-065",
        "The SD card's file or folder cannot be read",
        "The image or folder that is the card, or a file in it, cannot be read. The program sees "
        "an empty slot or an error of the card.",
        "vc4lab boot --help",
        "Check that it is there and may be read.",
    ),
    Entry(
        "SOC-066",
        "Too much was written to the SD card",
        "Writes to the card are kept in memory, at most 512 MiB of them. The card reports an "
        "error for what comes then.",
        "vc4lab boot --help",
        "None; a program that fills the card cannot be run to its end.",
    ),
    Entry(
        "SOC-067",
        "A file is not on the SD card",
        "The card is made of a folder. A FAT32 card cannot hold everything a folder can, and "
        "nothing from outside of the folder gets onto it.",
        "docs/talking.md",
        "Rename or copy the file, or make a card image.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-080",
        "The VideoCore is given an ARM address",
        "The framebuffer structure of mailbox channel 1 is named without a bus alias. The "
        "VideoCore then writes its answer through its own caches, and the ARM may go on reading "
        "the old bytes. vc4lab takes any alias.",
        "Raspberry Pi firmware wiki, mailbox framebuffer interface",
        "Add 0x40000000 (Pi 1, Zero) or 0xC0000000 (Pi 2, 3) to the address, or use property tags.",
        Severity.HINT,
    ),
    Entry(
        "SOC-081",
        "Two owners of the V3D",
        "The V3D has one set of list threads and one queue of user programs. Here the firmware is "
        "asked to use it (execute QPU, VCHIQ) while the program uses it by registers: each would "
        "stop or overwrite what the other has started.",
        _MAILBOX + ", execute QPU (0x00030011)",
        "Wait until the own lists and programs are through, or start all of them in one way only; "
        "on a card with Linux do not load the vc4 overlay beside bare-metal code.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-082",
        "The cut-down firmware",
        "With gpu_mem=16 the boot loader takes start_cd.elf, which leaves out codecs and the 3D "
        "parts; whether it powers the V3D is not documented. vc4lab does.",
        "Raspberry Pi documentation, config.txt, gpu_mem",
        "Set gpu_mem=32 or more in config.txt.",
        Severity.HINT,
    ),
    Entry(
        "SOC-083",
        "The framebuffer's pitch is ignored",
        "Lines of the framebuffer begin pitch bytes apart, which can be more than width x bytes a "
        "pixel. Something was written to the bytes between, so the program takes its lines to be "
        "shorter than they are: the picture comes out slanted.",
        _MAILBOX + ", get pitch (0x00040008)",
        "Ask for the pitch and compute addresses as y * pitch + x * bytes.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-084",
        "The pixel order is left to the board",
        "The program uses 24 or 32 bits a pixel and never sets the pixel order. The firmware's "
        "default differs between boards and versions: red and blue may be exchanged.",
        _MAILBOX + ", set pixel order (0x00048006)",
        "Set it: 1 RGB (byte 0 is red, as the V3D's RGBA8888), 0 BGR. `vc4lab boot --both-orders "
        "--screenshot F.png` shows both readings side by side.",
        Severity.HINT,
    ),
    Entry(
        "SOC-085",
        "The V3D's frame does not fit the framebuffer",
        "The rendering mode (113) stores into the framebuffer in another form than the display "
        "reads: other bits a pixel, lines of another length, or tiles.",
        "AG100-R p. 72, record 113; " + _MAILBOX + ", get pitch",
        "Give record 113 the framebuffer's width, a format of its depth, and raster layout; choose "
        "a width whose lines are a multiple of 32 bytes.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-086",
        "A buffer is overrun",
        "With --strict a guard zone follows everything that the firmware hands out. Something "
        "wrote into one: past the end of the framebuffer, or of memory that was allocated by "
        "mailbox. On a board that is whatever lies there.",
        _MAILBOX + ", allocate memory (0x0003000C), allocate buffer (0x00040001)",
        "Compare sizes: lines are pitch bytes long, tiled surfaces are padded to whole tiles.",
    ),
    Entry(
        "SOC-087",
        "Registers of another board",
        "The program wrote where a Pi Zero or 1 has its peripherals (0x20000000). On a Pi 2 or 3 "
        "that is RAM: nothing happens, and what is read is what was written.",
        _PERIPHERALS + " 1.2.3; BCM2836 ARM-local peripherals",
        "Use the base 0x3F000000, or boot it with --board pi1 or zero.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-088",
        "A service of the firmware that is not there",
        "There is no VCHIQ, by which a board's firmware offers its own GL, sound and camera.",
        _MAILBOX + ", VCHIQ init (0x00048010)",
        "Use the registers themselves: the V3D, the PWM, the framebuffer. A program that tests the "
        "answer sees that it was refused.",
        Severity.WARNING,
    ),
    Entry(
        "SOC-089",
        "A transparent picture",
        "With alpha mode 0 a pixel is opaque if its alpha is 0, with mode 1 if it is 255; the "
        "screen under the framebuffer is black.",
        _MAILBOX + ", set alpha mode (0x00048007)",
        "Set alpha mode 2 (ignored), or write the other alpha into the pixels.",
        Severity.WARNING,
    ),
    *soc_cores.ENTRIES,
]
