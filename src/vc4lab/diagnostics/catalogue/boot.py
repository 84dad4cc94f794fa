"""Messages about starting a board: the SD card, config.txt, the kernel image."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_CONFIG = "Raspberry Pi documentation, config.txt"
_BOOT = "Raspberry Pi documentation, boot sequence; LED warning flash codes"

ENTRIES = [
    Entry(
        "BOOT-001",
        "The folder or image cannot be opened",
        "What was given to boot from does not exist, may not be read, or is neither a folder with "
        "the files of an SD card nor a kernel image.",
        "vc4lab boot --help",
        "Give the folder that holds kernel7.img and config.txt, or the image itself.",
    ),
    Entry(
        "BOOT-002",
        "No kernel image on the card (LED flashes 7 times)",
        "The firmware looks for the file that kernel= names, otherwise for the board's own name: "
        "kernel7.img, then kernel.img on a Pi 2. None of them is there, so a real board flashes "
        "its green LED seven times and stops.",
        _BOOT,
        "Name the image kernel7.img, or write kernel=NAME into config.txt.",
    ),
    Entry(
        "BOOT-003",
        "The kernel image is empty",
        "The file has no bytes. A real board would run whatever the RAM happens to hold.",
        _BOOT,
        "Look at the linker and objcopy steps that made the image.",
    ),
    Entry(
        "BOOT-004",
        "The kernel image is larger than the ARM's RAM",
        "The image does not fit between its load address and the VideoCore's part of the RAM.",
        _BOOT,
        "Check for a linker script that puts data far away from the code (objcopy fills the gap), "
        "or lower gpu_mem.",
    ),
    Entry(
        "BOOT-005",
        "The load address is not in RAM",
        "kernel_address= in config.txt names an address where this board has no RAM.",
        _CONFIG,
        "Leave kernel_address out (0x8000) or choose an address inside the RAM.",
    ),
    Entry(
        "BOOT-006",
        "The ELF file cannot be started",
        "An ELF kernel is loaded segment by segment, as the firmware does, and entered at its "
        "entry point. This one is damaged, made for another processor, or has no segment that "
        "fits into the ARM's RAM.",
        _BOOT,
        "Link it for this board, or make a raw image: objcopy -O binary kernel.elf kernel7.img",
    ),
    Entry(
        "BOOT-008",
        "The SD-card image cannot be read",
        "The file has the signature of a partition table or boot sector, but no FAT16 or FAT32 "
        "file system that makes sense, or it is shorter than the file system says.",
        _BOOT,
        "Check the image with fsck.fat, or give a folder with the card's files instead.",
    ),
    Entry(
        "BOOT-007",
        "The kernel image begins with zeros",
        "The first words of the image are zero. They execute as no-operations, so it may work, "
        "but often the start-up code was not linked first.",
        _BOOT,
        "Put the start-up section first in the linker script.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-010",
        "A line of config.txt makes no sense",
        "The line is neither key=value, nor a [filter], nor a comment. The firmware skips it "
        "without a word.",
        _CONFIG,
        "Correct or remove the line.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-011",
        "An unknown filter in config.txt",
        "The section's lines are skipped, as the firmware does with filters it does not know.",
        _CONFIG + ", conditional filters",
        "Filters are [all], [pi1], [pi2], [pi3], [pi0], [none], [EDID=…], [gpio4=1] and a few "
        "more.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-012",
        "A line of config.txt, or a file of text, is too long",
        "The firmware reads 98 characters of a line; the rest is dropped. Of config.txt and what "
        "it includes 1 MiB is read, of cmdline.txt 1024 bytes.",
        _CONFIG,
        "Shorten the line or the file.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-013",
        "A file that config.txt names is missing",
        "An include or initramfs line names a file that is not on the card, that does not fit "
        "into the RAM, or that is included again and again. The firmware goes on without it. A "
        "RAM disk given with --initrd ends the start instead: it is empty, or does not fit.",
        _CONFIG,
        "Put the file on the card, or take the line out.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-014",
        "The firmware does not know this config.txt key",
        "Perhaps it is misspelt. The firmware ignores it without a word.",
        _CONFIG,
        "Check the spelling.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-021",
        "The firmware's tags overwrite the kernel image",
        "The firmware writes its tagged list (memory size, command line) to 0x100 after it has "
        "loaded the image. An image at address 0 loses its bytes from there on.",
        _CONFIG + ", disable_commandline_tags",
        "Write disable_commandline_tags=1 next to kernel_old=1 in config.txt.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-022",
        "There is no such SD card",
        "The folder or image that was to be put into the slot does not exist or is neither.",
        "vc4lab boot --help",
        "Check the path after --card.",
    ),
    Entry(
        "BOOT-030",
        "An ELF file whose names are not used",
        "Messages name functions when the ELF file of the program lies beside the image (the same "
        "name ending in .elf, or kernel.elf). This one is damaged, has no symbol table, or its "
        "bytes are not those of the image: then its names would be wrong.",
        "System V ABI, chapters 4 and 5",
        "Build image and ELF file together (objcopy -O binary), and do not strip the ELF file.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-031",
        "A device tree that is not used",
        "The file is no flattened device tree, or a damaged one. The program gets the tagged list "
        "(32 bits) or a small tree instead. A tree given with --dtb ends the start instead, also "
        "where config.txt says that the program is handed none.",
        "Devicetree Specification 0.3, chapter 5",
        "Copy the .dtb file anew, or take it from the card; `device_tree=` without a name in "
        "config.txt switches them off.",
        Severity.WARNING,
    ),
]
