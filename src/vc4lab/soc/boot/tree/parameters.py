"""Parameters of device trees and overlays: `dtparam=i2c=on`, `dtoverlay=name,gpio=5`.

`__overrides__` says what a parameter changes: for each change a node's number and a text, which
names the property with the kind of its value, or fragments to be enabled.
Source: Raspberry Pi documentation, device trees, overlays and parameters, part 2.2.
"""

from __future__ import annotations

import re

from vc4lab.soc.boot.tree.device_tree import Node
from vc4lab.soc.boot.tree.overlays import CONTENT, DORMANT, OVERRIDES, BadOverlay, by_handle, found, string_of

YES = frozenset({"1", "y", "yes", "on", "true", "okay"})
NO = frozenset({"0", "n", "no", "off", "false", "disabled", "none"})
WORDS = {"down": 1, "up": 2}
"""Words for pull resistors."""
BYTES = {".": 1, ";": 2, ":": 4, "#": 8}
"""Size of a number by the sign before its offset."""
LONGEST_PROPERTY = 1 << 16
FRAGMENT = re.compile(r"([=+!-])(\d{1,6})")
CHANGE = re.compile(r"([\w,\-+#.]*?)(?:([.;:#])(\d{1,6})|(\[)(\d{1,6})\]?|([?!]))?(?:=(.*))?")


class UnknownParameter(BadOverlay):
    """There is no parameter of that name; the text says which there are."""


def set_parameter(root: Node, name: str, value: str, tree: Node | None = None) -> None:
    """Change what a parameter of a tree or overlay stands for. Raises BadOverlay.

    tree: the card's, whose nodes an overlay's parameters may name, too.
    """
    overrides = found(root, OVERRIDES)
    if overrides is None:
        raise UnknownParameter(f"parameter {name[:40]}: this device tree has no parameters")
    raw = overrides.properties.get(name)
    if raw is None:
        known = ", ".join(sorted(overrides.properties)[:20]) or "none"
        raise UnknownParameter(f"there is no parameter {name[:40]} (known: {known})")
    if not isinstance(raw, bytes):
        raise BadOverlay(f"parameter {name[:40]} is damaged")
    at = 0
    while at < len(raw):
        end = raw.find(0, at + 4)
        if end < 0:
            raise BadOverlay(f"parameter {name[:40]} is damaged")
        handle = int.from_bytes(raw[at : at + 4], "big")
        change = raw[at + 4 : end].decode("utf-8", "replace")
        at = end + 1
        if handle == 0:
            _enable(root, change, value, name)
            continue
        node = by_handle(root, handle)
        if node is None and tree is not None:
            node = by_handle(tree, handle)
        if node is None:
            raise BadOverlay(f"parameter {name[:40]} names a node that is not there")
        if change.endswith("="):  # a cell follows, which may be a node's number
            change += str(int.from_bytes(raw[at : at + 4], "big"))
            at += 4
        _change(node, change, value, name)


def _is_yes(value: str, name: str) -> bool:
    text = value.lower()
    if text in YES or text in NO:
        return text in YES
    raise BadOverlay(f"parameter {name[:40]}: {value[:40]!r} is neither on nor off")


def _enable(root: Node, change: str, value: str, name: str) -> None:
    """`=2`: fragment 2 is there if the value says so; `!2`: if not; `+2`, `-2`: with or without."""
    places = list(FRAGMENT.finditer(change))
    if "".join(match[0] for match in places) != change or not places:
        raise BadOverlay(f"parameter {name[:40]}: {change[:40]!r} is not understood")
    for match in places:
        kind, number = match[1], match[2]
        wanted = kind == "+" if kind in "+-" else _is_yes(value, name) == (kind == "=")
        for title in (f"fragment@{int(number)}", f"fragment-{int(number)}"):
            fragment = found(root, title)
            content = None if fragment is None else found(fragment, CONTENT)
            if fragment is not None and content is None:
                content = found(fragment, DORMANT)
            if content is not None:
                content.name = CONTENT if wanted else DORMANT
                break
        else:
            raise BadOverlay(f"parameter {name[:40]}: there is no fragment {number}")


def _change(node: Node, change: str, value: str, name: str) -> None:
    match = CHANGE.fullmatch(change)
    if match is None or not match[1]:
        raise BadOverlay(f"parameter {name[:40]}: {change[:40]!r} is not understood")
    target, sign, place, string, start, boolean, literal = match.groups()
    if literal is not None:
        if literal.startswith("{"):
            raise BadOverlay(f"parameter {name[:40]}: tables of values are not supported")
        value = literal
    if boolean:
        if _is_yes(value, name) == (boolean == "?"):
            node.properties.setdefault(target, b"")
        else:
            node.properties.pop(target, None)
    elif sign:
        _put_number(node, target, int(place), BYTES[sign], value, name)
    elif string:
        _put_bytes(node, target, int(start), value, name)
    elif target == "name":
        node.name = re.sub(r"[^\x21-\x7e]|/", "_", value)[:60] or node.name
    elif target == "status":
        node.properties[target] = "okay" if _is_yes(value, name) else "disabled"
    elif target == "bootargs" and target in node.properties:
        node.properties[target] = f"{string_of(node.properties[target])} {value}"
    else:
        node.properties[target] = value


def _put_number(node: Node, target: str, at: int, size: int, value: str, name: str) -> None:
    if at + size > LONGEST_PROPERTY:
        raise BadOverlay(f"parameter {name[:40]} writes at byte {at} of a property")
    text = value.lower()
    match = re.fullmatch(r"(-?)(0x[0-9a-f]{1,16}|\d{1,20})", text)
    if match is not None:
        number = int(match[2], 0 if "x" in text else 10) * (-1 if match[1] else 1)
    elif text in WORDS:
        number = WORDS[text]
    else:
        number = int(_is_yes(value, name))
    raw = (number & (1 << 8 * size) - 1).to_bytes(size, "big")
    old = node.properties.get(target)
    data = old if isinstance(old, bytes) else b""
    data += bytes(max(at + size - len(data), 0))
    node.properties[target] = data[:at] + raw + data[at + size :]
    before, separator, _ = node.name.partition("@")
    if target == "reg" and at == 0 and separator:
        node.name = f"{before}@{number & (1 << 8 * size) - 1:x}"


def _put_bytes(node: Node, target: str, at: int, value: str, name: str) -> None:
    """`[0`: bytes in hexadecimal digits, such as an address of Ethernet."""
    digits = re.sub(r"[:\- ]", "", value)
    if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", digits) is None or at > LONGEST_PROPERTY:
        raise BadOverlay(f"parameter {name[:40]}: {value[:40]!r} is not a row of bytes")
    raw = bytes.fromhex(digits)
    old = node.properties.get(target)
    data = old if isinstance(old, bytes) else b""
    data += bytes(max(at + len(raw) - len(data), 0))
    node.properties[target] = data[:at] + raw + data[at + len(raw) :]
