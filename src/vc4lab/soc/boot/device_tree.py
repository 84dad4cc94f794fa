"""A minimal flattened device tree, for programs that look for RAM and the command line.

Source: Devicetree Specification 0.3, chapter 5. A card's own .dtb file goes before it, see
`device_tree_file.py`.
"""

from __future__ import annotations

import struct

MAGIC, VERSION, LAST_COMPATIBLE = 0xD00DFEED, 17, 16
BEGIN, END, PROPERTY, FINISH = 1, 2, 3, 9
HEADER = 40

Value = str | int | bytes


class TreeWriter:
    """Writes a tree node by node."""

    def __init__(self) -> None:
        self.structure = bytearray()
        self._strings = bytearray()
        self._offsets: dict[str, int] = {}

    def begin(self, name: str) -> None:
        text = name.encode("ascii") + b"\0"
        self.structure += struct.pack(">I", BEGIN) + text + bytes(-len(text) % 4)

    def end(self) -> None:
        self.structure += struct.pack(">I", END)

    def set(self, name: str, value: Value) -> None:
        if isinstance(value, str):
            data = value.encode("utf-8", "replace") + b"\0"
        elif isinstance(value, int):
            data = struct.pack(">I", value & 0xFFFFFFFF)
        else:
            data = value
        if name not in self._offsets:
            self._offsets[name] = len(self._strings)
            self._strings += name.encode("ascii") + b"\0"
        self.structure += struct.pack(">3I", PROPERTY, len(data), self._offsets[name])
        self.structure += data + bytes(-len(data) % 4)

    def finish(self) -> bytes:
        self.structure += struct.pack(">I", FINISH)
        reserved = bytes(16)
        structure_at = HEADER + len(reserved)
        strings_at = structure_at + len(self.structure)
        total = strings_at + len(self._strings)
        header = struct.pack(
            ">10I", MAGIC, total, structure_at, strings_at, HEADER, VERSION, LAST_COMPATIBLE, 0,
            len(self._strings), len(self.structure),
        )  # fmt: skip
        return header + reserved + bytes(self.structure) + bytes(self._strings)


def device_tree(
    model: str,
    chip: str,
    memory: int,
    revision: int,
    serial: int,
    command_line: str,
    ramdisk: tuple[int, int] | None = None,
) -> bytes:
    """The tree as bytes: root, memory (bytes from 0), chosen, and the board's numbers."""
    tree = TreeWriter()
    tree.begin("")
    tree.set("#address-cells", 1)
    tree.set("#size-cells", 1)
    tree.set("model", model)
    tree.set("compatible", f"brcm,{chip}")
    tree.set("serial-number", f"{serial:016x}")
    tree.begin("memory@0")
    tree.set("device_type", "memory")
    tree.set("reg", struct.pack(">II", 0, memory))
    tree.end()
    tree.begin("chosen")
    tree.set("bootargs", command_line)
    if ramdisk is not None:
        tree.set("linux,initrd-start", ramdisk[0])
        tree.set("linux,initrd-end", ramdisk[0] + ramdisk[1])
    tree.end()
    tree.begin("system")
    tree.set("linux,revision", revision)
    tree.set("linux,serial", struct.pack(">Q", serial))
    tree.end()
    tree.end()
    return tree.finish()
