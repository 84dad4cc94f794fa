"""A device tree of the card: read, completed with the firmware's data, written again.

The file is not trusted: whatever it holds, reading ends in a tree or in `BadTree`.
Source: Devicetree Specification 0.3, chapter 5; Raspberry Pi documentation, device trees.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from vc4lab.soc.boot.device_tree import BEGIN, END, FINISH, MAGIC, PROPERTY, TreeWriter, Value

NOTHING = 4
MAX_NODES, DEEPEST = 20_000, 32


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


def read_tree(data: bytes) -> Node:
    """The root of a blob. Raises BadTree."""
    try:
        magic, total, structure, strings = struct.unpack_from(">4I", data)
        if magic != MAGIC:
            raise BadTree(f"not a device tree: it begins with 0x{magic:08x}, not 0x{MAGIC:08x}")
        if total > len(data):
            raise BadTree(f"a truncated device tree: {len(data)} of {total} bytes")
        if structure % 4:
            raise BadTree("a damaged device tree: its structure is not aligned")
        return _root(_tokens(data[:total], structure, strings))
    except struct.error:
        raise BadTree(f"not a device tree, or a truncated one ({len(data)} bytes)") from None
    except UnicodeDecodeError:
        raise BadTree("a damaged device tree: a name that is not ASCII") from None
    except BadTree:
        raise
    except ValueError:  # of bytes.index
        raise BadTree("a damaged device tree: a name without an end") from None


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
    writer = TreeWriter()

    def write(node: Node) -> None:
        writer.begin(node.name)
        for name, value in node.properties.items():
            writer.set(name, value)
        for child in node.children:
            write(child)
        writer.end()

    write(root)
    return writer.finish()


def complete(
    root: Node,
    memory: int,
    revision: int,
    serial: int,
    command_line: str,
    ramdisk: tuple[int, int] | None = None,
) -> None:
    """Put in what the firmware does: RAM from 0 on, command line, RAM disk, the board's numbers."""
    address, size = root.cells("#address-cells", 2), root.cells("#size-cells", 1)
    if 1 <= address <= 2 and 1 <= size <= 2:
        node = root.child("memory")
        node.properties.setdefault("device_type", "memory")
        node.properties["reg"] = bytes(4 * address) + memory.to_bytes(4 * size, "big")
    root.properties["serial-number"] = f"{serial:016x}"
    chosen = root.child("chosen")
    if command_line or "bootargs" not in chosen.properties:
        chosen.properties["bootargs"] = command_line
    if ramdisk is not None:
        chosen.properties["linux,initrd-start"] = ramdisk[0]
        chosen.properties["linux,initrd-end"] = ramdisk[0] + ramdisk[1]
    system = root.child("system")
    system.properties["linux,revision"] = revision
    system.properties["linux,serial"] = struct.pack(">Q", serial)
