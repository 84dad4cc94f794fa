"""Messages about starting a board: the SD card, config.txt, the kernel image."""

from __future__ import annotations

from vc4lab.diagnostics.entry import Entry, Severity

_CONFIG = "Raspberry Pi documentation, config.txt"
_BOOT = "Raspberry Pi documentation, boot sequence; LED warning flash codes"

ENTRIES = [
    Entry(
        "BOOT-001",
        "The folder or image cannot be opened",
        "The path to boot from does not exist, cannot be read, or is neither a folder with the "
        "files of an SD card nor a kernel image.",
        "vc4lab boot --help",
        "Name the folder that holds kernel7.img and config.txt, or the image itself.",
    ),
    Entry(
        "BOOT-002",
        "No kernel image on the card (LED flashes 7 times)",
        "The firmware loads the file that kernel= in config.txt names, otherwise the board's own "
        "name: kernel7.img, then kernel.img on a Pi 2. The card has none of them. A real board "
        "flashes its green LED seven times and stops.",
        _BOOT,
        "Name the image kernel7.img, or write kernel=NAME into config.txt.",
    ),
    Entry(
        "BOOT-003",
        "The kernel image is empty",
        "The file has no bytes. A real board would execute whatever the RAM happens to hold.",
        _BOOT,
        "Check the linker and objcopy steps that made the image.",
    ),
    Entry(
        "BOOT-004",
        "The kernel image is larger than the ARM's RAM",
        "The image does not fit between its load address and the VideoCore's part of the RAM.",
        _BOOT,
        "Check for a linker script that places data far from the code (objcopy fills the gap), or "
        "lower gpu_mem.",
    ),
    Entry(
        "BOOT-005",
        "The load address is not in RAM",
        "kernel_address= in config.txt names an address where this board has no RAM.",
        _CONFIG,
        "Leave kernel_address out (the default is 0x8000), or choose an address inside the RAM.",
    ),
    Entry(
        "BOOT-006",
        "The ELF file cannot be started",
        "The firmware loads an ELF kernel segment by segment and starts it at its entry point. "
        "This file is damaged, was made for another processor, or has no segment that fits into "
        "the ARM's RAM.",
        _BOOT,
        "Link it for this board, or make a raw image: objcopy -O binary kernel.elf kernel7.img",
    ),
    Entry(
        "BOOT-008",
        "The SD-card image cannot be read",
        "The file has the signature of a partition table or boot sector, but no valid FAT16 or "
        "FAT32 file system, or it is shorter than its file system says.",
        _BOOT,
        "Check the image with fsck.fat, or give a folder with the card's files instead.",
    ),
    Entry(
        "BOOT-007",
        "The kernel image begins with zeros",
        "The first words of the image are zero. They execute as no-operations, so the program may "
        "work, but often the start-up code was not linked first.",
        _BOOT,
        "Put the start-up section first in the linker script.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-010",
        "A line of config.txt cannot be parsed",
        "The line is neither key=value, nor a [filter], nor a comment. The firmware skips it silently.",
        _CONFIG,
        "Correct or remove the line.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-011",
        "Unknown filter in config.txt",
        "The firmware skips the section's lines, as it does for every filter that it does not know.",
        _CONFIG + ", conditional filters",
        "Use one of [all], [pi1], [pi2], [pi3], [pi0], [none], [EDID=…], [gpio4=1] and the few "
        "others that the reference lists.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-012",
        "A line of config.txt, or a text file, is too long",
        "The firmware reads 98 characters of a line and drops the rest. It reads 1 MiB of "
        "config.txt with the files that it includes, and 1024 bytes of cmdline.txt.",
        _CONFIG,
        "Shorten the line or the file.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-013",
        "A file that config.txt names is missing",
        "An include, initramfs or armstub line names a file that is not on the card, does not fit "
        "into the RAM, includes itself, or is not what it should be (a Git LFS pointer, a web "
        "page). The firmware continues without it. A RAM disk given with "
        "--initrd that is empty or does not fit ends the start instead.",
        _CONFIG,
        "Put the file on the card, or remove the line.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-014",
        "Unknown key in config.txt",
        "The firmware ignores keys that it does not know, silently. The key may be misspelt.",
        _CONFIG,
        "Check the spelling.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-015",
        "The Linux kernel's file is damaged",
        "A Linux kernel begins with a header that says how long it is and how much room it needs "
        "(arm64 Image: magic ARM\\x64 at byte 56; zImage: 0x016f2818 at byte 36). Here the header "
        "contradicts itself or the file, most often because the file is shorter than it was.",
        "Linux, Documentation/arch/arm64/booting.rst and arch/arm/booting.rst",
        "Copy or unpack the kernel again, and compare its size.",
    ),
    Entry(
        "BOOT-016",
        "The kernel is not made for this board",
        "The file is a kernel for other cores (AArch64 on a board with 32 bits, or the other way "
        "round with arm_64bit in config.txt), with the other byte order, with pages of 16 KiB, or "
        "in a form that another loader unpacks: U-Boot's uImage or FIT, a compressed EFI program, "
        "or packed with xz, lz4 or zstd. The firmware starts plain images, AArch64 also with gzip.",
        "Raspberry Pi documentation, config.txt, kernel and arm_64bit",
        "AArch64: arch/arm64/boot/Image or Image.gz with --board pi3. 32 bits: arch/arm/boot/zImage"
        ", of multi_v7_defconfig for pi2 and pi3, of ARMv6 for zero and pi1.",
    ),
    Entry(
        "BOOT-017",
        "The Linux kernel is not where it wants to be",
        "The Image's header asks for an offset from a multiple of 2 MiB. Elsewhere Linux complains "
        "of the boot loader and copies itself, or stops silently if it is old.",
        "Linux, Documentation/arch/arm64/booting.rst",
        "Remove kernel_address and kernel_old from config.txt, or --load-address.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-018",
        "Linux gets no device tree",
        "Linux finds the board's devices in a device tree. Neither the card nor --dtb has one of "
        "this board, so that it has no console and most likely prints nothing at all.",
        "Raspberry Pi documentation, device trees",
        "Put the board's .dtb on the card (`vc4lab boards` names it), or give it with --dtb; "
        "Debian's linux-image packages have them under /usr/lib.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-019",
        "The kernel is not the file itself",
        "The file holds a Git LFS pointer (three lines of text with the size and a checksum of the "
        "file that was meant), or the web page that shows the file. A board would execute the "
        "text.",
        "Git LFS specification, the pointer",
        "In a clone: git lfs install, git lfs pull. On a web site: download the raw file, or the "
        "release's archive.",
    ),
    Entry(
        "BOOT-021",
        "What the firmware loads overwrites something else",
        "After loading the image the firmware writes its tagged list (memory size, command line) "
        "to address 0x100. An image loaded at address 0 is overwritten from there on. A RAM disk "
        "or a device tree with an address in config.txt can also lie in the kernel, or in the room "
        "that Linux needs after its image.",
        _CONFIG + ", disable_commandline_tags",
        "Write disable_commandline_tags=1 next to kernel_old=1 in config.txt; leave out the "
        "address of initramfs, or device_tree_address.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-022",
        "The SD card cannot be found",
        "The path for the card does not exist, or is neither a folder nor a card image.",
        "vc4lab boot --help",
        "Check the path after --card.",
    ),
    Entry(
        "BOOT-030",
        "The ELF file's names are not used, or are moved",
        "Messages name functions when the program's ELF file lies next to the image (same name "
        "ending in .elf, or kernel.elf). This one is damaged, has no symbol table, or does not "
        "contain the bytes of the image, so its names would be wrong. Or it is the program, but "
        "linked for another address than the image is loaded to: then the names are moved, and "
        "the program itself finds its data and functions at wrong addresses, unless it is "
        "position-independent.",
        "System V ABI, chapters 4 and 5; Raspberry Pi documentation, config.txt, kernel_address",
        "Build image and ELF file together (objcopy -O binary), and do not strip the ELF file. "
        "Link for 0x8000 (32 bits) or 0x80000 (AArch64), or write kernel_address= into config.txt.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-031",
        "The device tree is not used",
        "The file is not a flattened device tree, or is damaged. The program gets the tagged list "
        "(32 bits) or a small built-in tree instead. A tree given with --dtb ends the start "
        "instead, also where config.txt says that the program gets no tree.",
        "Devicetree Specification 0.3, chapter 5",
        "Copy the .dtb file again, or remove it from the card; `device_tree=` without a name in "
        "config.txt switches device trees off.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-032",
        "An overlay of the device tree, or a parameter, is left out",
        "The file that dtoverlay names is missing or damaged, or does not fit the card's tree: a "
        "label or a node that it needs is not there. Linux gets the tree as if the line were not "
        "in config.txt, as on a board. Trees of Debian and of mainline Linux have no labels; "
        "those of the Raspberry Pi's kernel have.",
        "Raspberry Pi documentation, device trees, overlays and parameters",
        "Take the .dtb and the folder overlays from the same release; for your own overlays "
        "compile both with `dtc -@`.",
        Severity.WARNING,
    ),
    Entry(
        "BOOT-033",
        "The device tree has no such parameter",
        "A dtparam line, or the part of a dtoverlay line after the name, sets a parameter that "
        "the tree or the overlay does not define in __overrides__. It changes nothing, as on a "
        "board.",
        "Raspberry Pi documentation, device trees, overlays and parameters",
        "Compare with overlays/README of the Raspberry Pi's firmware; a dtparam after a dtoverlay "
        "is that overlay's, until an empty `dtoverlay=` line.",
        Severity.HINT,
    ),
    Entry(
        "BOOT-034",
        "The kernel's code is for the other instruction set",
        "A Pi 3 runs AArch64 code (32-bit words, 64-bit registers) or AArch32 code (that of a Pi 1 "
        "or 2), and the firmware decides by the kernel's name or arm_64bit= which it enters. The "
        "first instructions of this kernel are those of the other one; they mean something else "
        "here, and one of the first few is undefined.",
        "Raspberry Pi documentation, config.txt, arm_64bit and kernel",
        "Name AArch64 kernels kernel8.img, AArch32 kernels kernel7.img (Pi 2 and 3) or kernel.img "
        "(Pi 1 and Zero).",
        Severity.WARNING,
    ),
]
