"""Flattened device trees: the card's, completed with the firmware's data, or a small one instead.

The card's file is not trusted: whatever it holds, reading ends in a tree or in `BadTree`.
Source: Devicetree Specification 0.3, chapter 5; Raspberry Pi documentation, device trees.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC, VERSION, LAST_COMPATIBLE = 0xD00DFEED, 17, 16
BEGIN, END, PROPERTY, NOTHING, FINISH = 1, 2, 3, 4, 9
HEADER, RESERVED = 40, 16
MAX_NODES, DEEPEST, MAX_RESERVED = 20_000, 32, 100
SEED = 64
"""Bytes of the random numbers that the firmware gives Linux."""
ONE_CELL = struct.pack(">I", 1)

Value = str | int | bytes


class BadTree(ValueError):  # noqa: N818 - said to the user as it is
    """The file holds no device tree."""


@dataclass
class Node:
    """A node: its properties in order, and the nodes below."""

    name: str
    properties: dict[str, Value] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)

    def child(self, name: str) -> Node:
        """The node of that name (also as name@address); made if there is none."""
        for node in self.children:
            if node.name.partition("@")[0] == name:
                return node
        self.children.append(Node(name))
        return self.children[-1]

    def cells(self, name: str, default: int) -> int:
        """#address-cells or #size-cells."""
        value = self.properties.get(name)
        return value[3] if isinstance(value, bytes) and len(value) == 4 else default


@dataclass
class Tree(Node):
    """The root, and the memory that programs must leave alone: address and size."""

    reserved: list[tuple[int, int]] = field(default_factory=list)

    def reserve(self, address: int, size: int) -> None:
        """Keep programs away from this memory, too."""
        if not any(a <= address and address + size <= a + n for a, n in self.reserved):
            self.reserved.append((address, size))


def read_tree(data: bytes) -> Tree:
    """The root of a blob. Raises BadTree."""
    try:
        magic, total, structure, strings, reserved = struct.unpack_from(">5I", data)
        if magic != MAGIC:
            raise BadTree(f"not a device tree: it begins with 0x{magic:08x}, not 0x{MAGIC:08x}")
        if total > len(data):
            raise BadTree(f"a truncated device tree: {len(data)} of {total} bytes")
        if structure % 4:
            raise BadTree("a damaged device tree: its structure is not aligned")
        root = _root(_tokens(data[:total], structure, strings))
        reservations = _reservations(data[:total], reserved)
        return Tree(root.name, root.properties, root.children, reservations)
    except struct.error:
        raise BadTree(f"not a device tree, or a truncated one ({len(data)} bytes)") from None
    except UnicodeDecodeError:
        raise BadTree("a damaged device tree: a name that is not ASCII") from None
    except BadTree:
        raise
    except ValueError:  # of bytes.index
        raise BadTree("a damaged device tree: a name without an end") from None


def _reservations(data: bytes, at: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while True:
        pair: tuple[int, int] = struct.unpack_from(">2Q", data, at)
        if pair == (0, 0):
            return found
        found.append(pair)
        at += RESERVED
        if len(found) > MAX_RESERVED:
            raise BadTree("a damaged device tree: its reserved memory has no end")


def _tokens(data: bytes, at: int, strings: int) -> Iterator[tuple[int, str, bytes]]:
    while True:
        (token,) = struct.unpack_from(">I", data, at)
        at += 4
        if token == BEGIN:
            end = data.index(0, at)
            yield token, data[at:end].decode("ascii"), b""
            at = end + 4 & ~3
        elif token == PROPERTY:
            size, offset = struct.unpack_from(">2I", data, at)
            at += 8
            if at + size > len(data):
                raise BadTree("a damaged device tree: a property beyond its end")
            name = data[strings + offset : data.index(0, strings + offset)].decode("ascii")
            yield token, name, data[at : at + size]
            at += size + 3 & ~3
        elif token != NOTHING:
            yield token, "", b""
            if token != END:
                return


def _root(tokens: Iterator[tuple[int, str, bytes]]) -> Node:
    top = Node("")
    open_nodes = [top]
    for count, (token, name, value) in enumerate(tokens):
        if token == BEGIN:
            if count > MAX_NODES or len(open_nodes) > DEEPEST:
                raise BadTree("a damaged device tree: too many nodes")
            node = Node(name)
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
        elif token == PROPERTY:
            open_nodes[-1].properties[name] = value
        elif token == END and len(open_nodes) > 1:
            open_nodes.pop()
        elif token == FINISH and len(open_nodes) == 1 and len(top.children) == 1:
            return top.children[0]
        else:
            raise BadTree("a damaged device tree: its nodes do not nest")
    raise BadTree("a damaged device tree: it has no end")


def write_tree(root: Node) -> bytes:
    """The blob of a tree."""
    structure, strings = bytearray(), bytearray()
    offsets: dict[str, int] = {}

    def write(node: Node) -> None:
        structure.extend(struct.pack(">I", BEGIN) + _padded(node.name.encode("ascii") + b"\0"))
        for name, value in node.properties.items():
            if name not in offsets:
                offsets[name] = len(strings)
                strings.extend(name.encode("ascii") + b"\0")
            data = _data(value)
            structure.extend(struct.pack(">3I", PROPERTY, len(data), offsets[name]) + _padded(data))
        for child in node.children:
            write(child)
        structure.extend(struct.pack(">I", END))

    write(root)
    structure.extend(struct.pack(">I", FINISH))
    reserved = root.reserved if isinstance(root, Tree) else []
    reservations = b"".join(struct.pack(">2Q", *pair) for pair in (*reserved, (0, 0)))
    structure_at = HEADER + len(reservations)
    strings_at = structure_at + len(structure)
    header = struct.pack(
        ">10I", MAGIC, strings_at + len(strings), structure_at, strings_at, HEADER, VERSION,
        LAST_COMPATIBLE, 0, len(strings), len(structure),
    )  # fmt: skip
    return header + reservations + bytes(structure) + bytes(strings)


def _data(value: Value) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace") + b"\0"
    return struct.pack(">I", value & 0xFFFFFFFF) if isinstance(value, int) else value


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def device_tree(
    model: str,
    chip: str,
    memory: int,
    revision: int,
    serial: int,
    command_line: str,
    ramdisk: tuple[int, int] | None = None,
) -> bytes:
    """A minimal tree, for programs that look for RAM and the command line."""
    root = Tree("", {"#address-cells": ONE_CELL, "#size-cells": ONE_CELL}, [Node("memory@0")])
    root.properties |= {"model": model, "compatible": f"brcm,{chip}"}
    complete(root, memory, revision, serial, command_line, ramdisk)
    return write_tree(root)


def complete(
    root: Node,
    memory: int,
    revision: int,
    serial: int,
    command_line: str,
    ramdisk: tuple[int, int] | None = None,
) -> None:
    """Put in what the firmware does: RAM from 0 on, command line, RAM disk, the board's numbers.

    And random numbers, without which Linux collects its own for seconds; here always the same ones,
    so that runs repeat. Boards also give a `kaslr-seed`; without it a kernel stays where its file
    says, and its functions have the addresses of System.map.
    """
    address, size = root.cells("#address-cells", 2), root.cells("#size-cells", 1)
    if 1 <= address <= 2 and 1 <= size <= 2:
        node = root.child("memory")
        node.properties.setdefault("device_type", "memory")
        node.properties["reg"] = bytes(4 * address) + memory.to_bytes(4 * size, "big")
    root.properties["serial-number"] = f"{serial:016x}"
    chosen = root.child("chosen")
    if command_line or "bootargs" not in chosen.properties:
        chosen.properties["bootargs"] = command_line
    chosen.properties["rng-seed"] = hashlib.shake_128(b"rng-seed %d" % serial).digest(SEED)
    if ramdisk is not None:
        chosen.properties["linux,initrd-start"] = ramdisk[0]
        chosen.properties["linux,initrd-end"] = ramdisk[0] + ramdisk[1]
    system = root.child("system")
    system.properties["linux,revision"] = revision
    system.properties["linux,serial"] = struct.pack(">Q", serial)
