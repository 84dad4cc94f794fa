"""Overlays of the device tree (`dtoverlay=`), merged as the firmware does.

An overlay is a tree of fragments. Each names a node of the card's tree, by a label or a path, and
has what is to be put there. Labels are known from `__symbols__`; where an overlay uses one,
`__fixups__` says which words get its number. All files come from the card and are not trusted:
whatever they hold, merging ends in a tree or in `BadOverlay`.
Source: Linux, Documentation/devicetree/overlay-notes.rst and dynamic-resolution-notes.rst;
Raspberry Pi documentation, device trees, overlays and parameters.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from vc4lab.soc.boot.tree.device_tree import DEEPEST, MAX_NODES, Node, Tree, Value

CONTENT, DORMANT = "__overlay__", "__dormant__"
"""The node in a fragment that has its content; and that of one which a parameter must enable."""
SYMBOLS, FIXUPS, LOCAL_FIXUPS = "__symbols__", "__fixups__", "__local_fixups__"
OVERRIDES = "__overrides__"
OF_OVERLAYS = SYMBOLS, FIXUPS, LOCAL_FIXUPS, OVERRIDES
HANDLES = "phandle", "linux,phandle"
LARGEST_HANDLE = 0xFFFFFFF0
JOINED = "bootargs"
"""A command line in an overlay is added to that of the tree."""
MAX_FIXUPS = 10_000


class BadOverlay(ValueError):  # noqa: N818 - said to the user as it is
    """The overlay does not fit the tree, or is damaged; the tree stays as it was."""


def copied(node: Node) -> Node:
    """A node with all below it."""
    return Node(node.name, dict(node.properties), [copied(child) for child in node.children])


def nodes_of(root: Node) -> Iterator[Node]:
    """A node and all below it."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def found(node: Node, name: str) -> Node | None:
    """The child of exactly that name; without an address also the first that has one."""
    for child in node.children:
        if child.name == name:
            return child
    if "@" not in name:
        for child in node.children:
            if child.name.partition("@")[0] == name:
                return child
    return None


def at_path(root: Node, path: str) -> Node | None:
    """The node at a path such as /soc/serial@7e201000; one without / begins at an alias."""
    if not path.startswith("/"):
        alias, _, rest = path.partition("/")
        aliases = found(root, "aliases")
        text = None if aliases is None else string_of(aliases.properties.get(alias))
        if text is None or not text.startswith("/"):
            return None
        path = f"{text}/{rest}"
    node: Node | None = root
    for name in path.split("/"):
        if node is not None and name:
            node = found(node, name)
    return node


def string_of(value: Value | None) -> str | None:
    """A property's text."""
    if isinstance(value, bytes):
        return value.split(b"\0")[0].decode("utf-8", "replace")
    return value if isinstance(value, str) else None


def strings_of(value: Value) -> list[str]:
    """The texts of a list."""
    if not isinstance(value, bytes):
        return [value] if isinstance(value, str) else []
    return [part.decode("utf-8", "replace") for part in value.split(b"\0") if part]


def handle_of(node: Node) -> int | None:
    """The number by which others name a node."""
    for name in HANDLES:
        value = node.properties.get(name)
        if isinstance(value, bytes) and len(value) == 4:
            return int.from_bytes(value, "big")
    return None


def by_handle(root: Node, handle: int) -> Node | None:
    """The node with a number."""
    return next((node for node in nodes_of(root) if handle_of(node) == handle), None)


def highest_handle(root: Node) -> int:
    """The highest number in use."""
    handles = [handle_of(node) or 0 for node in nodes_of(root)]
    return max((handle for handle in handles if handle <= LARGEST_HANDLE), default=0)


def patched(value: Value | None, at: int, word: int, what: str) -> bytes:
    """A property with a word put in. Raises BadOverlay."""
    if not isinstance(value, bytes) or at < 0 or at + 4 > len(value):
        raise BadOverlay(f"{what} names a place that is not there")
    return value[:at] + struct.pack(">I", word & 0xFFFFFFFF) + value[at + 4 :]


class Overlay:
    """An overlay whose own numbers are made distinct from those of a tree, and whose labels of that
    tree are known.

    Parameters (`parameters.py`) are set before it is merged. Raises BadOverlay.
    """

    def __init__(self, root: Tree, tree: Tree) -> None:
        self.root = root
        self._tree = tree
        self._shift = highest_handle(tree)
        if highest_handle(root) + self._shift > LARGEST_HANDLE:
            raise BadOverlay("its phandles leave no room")
        for node in nodes_of(root):
            handle = handle_of(node)
            if handle is not None and handle <= LARGEST_HANDLE:
                for name in HANDLES:
                    if name in node.properties:
                        node.properties[name] = struct.pack(">I", handle + self._shift)
        local = found(root, LOCAL_FIXUPS)
        if local is not None:
            self._shift_references(local, root)
        self._resolve()

    def _shift_references(self, places: Node, node: Node) -> None:
        """Words that name nodes of the overlay itself; the tree of places has its shape."""
        for name, value in places.properties.items():
            raw = value if isinstance(value, bytes) else b""
            for at in struct.unpack(f">{len(raw) // 4}I", raw[: len(raw) & ~3]):
                old = node.properties.get(name)
                word = old[at : at + 4] if isinstance(old, bytes) else b""
                number = int.from_bytes(word, "big") + self._shift
                node.properties[name] = patched(old, at, number, f"{LOCAL_FIXUPS}/{name}")
        for child in places.children:
            below = found(node, child.name)
            if below is None:
                raise BadOverlay(f"{LOCAL_FIXUPS} names {child.name}, which is not there")
            self._shift_references(child, below)

    def fragments(self) -> Iterator[tuple[Node, Node]]:
        """The enabled fragments, each with its content."""
        for node in self.root.children:
            if node.name in OF_OVERLAYS:
                continue
            content = found(node, CONTENT)
            if content is not None:
                yield node, content

    def merge(self) -> None:
        """Put all fragments into the tree. Raises BadOverlay, with a tree that is to be dropped."""
        targets = {}
        for fragment, content in self.fragments():
            target = targets[fragment.name] = self._target(fragment)
            self._put(content, target, DEEPEST)
        self._take_symbols(targets)
        if sum(1 for _ in nodes_of(self._tree)) > MAX_NODES:
            raise BadOverlay("the tree would have too many nodes")

    def _resolve(self) -> None:
        """Fill in the numbers of the tree's labels."""
        fixups = found(self.root, FIXUPS)
        count = 0
        for label, value in ({} if fixups is None else fixups.properties).items():
            handle: int | None = None
            for place in strings_of(value):
                path, _, rest = place.partition(":")
                name, _, at = rest.rpartition(":")
                node = at_path(self.root, path) if path.startswith("/") else None
                count += 1
                if node is None or not at.isdecimal() or len(at) > 9 or count > MAX_FIXUPS:
                    raise BadOverlay(f"{FIXUPS} has a place that is not there: {place[:60]}")
                if handle is None:
                    handle = self._handle(label, needed=not _is_dormant(path, self.root))
                if handle is not None:
                    old = node.properties.get(name)
                    node.properties[name] = patched(old, int(at), handle, f"{FIXUPS}/{label}")

    def _handle(self, label: str, *, needed: bool) -> int | None:
        """The number of a labelled node of the tree; it gets one if it has none."""
        symbols = found(self._tree, SYMBOLS)
        if symbols is None:
            raise BadOverlay(
                f"it needs the label {label}, but this device tree has no labels (compiled without -@)"
            )
        path = string_of(symbols.properties.get(label))
        node = at_path(self._tree, path) if path is not None and path.startswith("/") else None
        if node is None:
            if needed:
                raise BadOverlay(f"it needs the label {label}, which this device tree has not")
            return None
        handle = handle_of(node)
        if handle is None:
            handle = 1 + max(highest_handle(self._tree), highest_handle(self.root))
            if handle > LARGEST_HANDLE:
                raise BadOverlay("its phandles leave no room")
            node.properties["phandle"] = struct.pack(">I", handle)
        return handle

    def _target(self, fragment: Node) -> tuple[Node, str]:
        path = string_of(fragment.properties.get("target-path"))
        if path is not None:
            node = at_path(self._tree, path)
            if node is None:
                raise BadOverlay(f"{fragment.name}: the tree has no {path[:60]}")
            return node, self._path_of(node)
        target = fragment.properties.get("target")
        number = int.from_bytes(target[:4], "big") if isinstance(target, bytes) else 0
        node = by_handle(self._tree, number) if number else None
        if node is None:
            raise BadOverlay(f"{fragment.name} names no node of the tree")
        return node, self._path_of(node)

    def _path_of(self, wanted: Node) -> str:
        waiting: list[tuple[Node, str]] = [(self._tree, "")]
        while waiting:
            node, path = waiting.pop()
            if node is wanted:
                return path or "/"
            waiting.extend((child, f"{path}/{child.name}") for child in node.children)
        return "/"

    def _put(self, content: Node, target: tuple[Node, str], deep: int) -> None:
        node, path = target
        if deep <= 0 or path.count("/") > DEEPEST:
            raise BadOverlay("its nodes nest too deep")
        for name, value in content.properties.items():
            old = node.properties.get(name)
            if name == JOINED and old is not None:
                value = f"{string_of(old)} {string_of(value)}"
            elif name in HANDLES and handle_of(node) is not None:
                continue  # others know the node by its number
            node.properties[name] = value
        for child in content.children:
            below = next((one for one in node.children if one.name == child.name), None)
            if below is None:
                below = Node(child.name)
                node.children.append(below)
            self._put(child, (below, f"{path}/{child.name}"), deep - 1)

    def _take_symbols(self, targets: dict[str, tuple[Node, str]]) -> None:
        """Later overlays may use this one's labels."""
        own = found(self.root, SYMBOLS)
        symbols = found(self._tree, SYMBOLS)
        if own is None or symbols is None:
            return
        for label, value in own.properties.items():
            _, fragment, content, *rest = [*(string_of(value) or "").split("/"), "", "", ""]
            if fragment in targets and content == CONTENT:
                path = "/".join([targets[fragment][1].rstrip("/"), *filter(None, rest)])
                symbols.properties[label] = path or "/"


def _is_dormant(path: str, root: Node) -> bool:
    """Whether a place lies in a fragment that is not enabled."""
    name = path.lstrip("/").partition("/")[0]
    fragment = found(root, name)
    return fragment is not None and found(fragment, CONTENT) is None
