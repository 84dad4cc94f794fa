"""Overlays and parameters of the device tree, compiled by a small writer of our own."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vc4lab.diagnostics import Reporter
from vc4lab.soc.board import BOARDS
from vc4lab.soc.boot.firmware import plan_boot
from vc4lab.soc.boot.tree.device_tree import Node, Tree, read_tree, write_tree
from vc4lab.soc.boot.tree.overlays import at_path, string_of

HALT = bytes.fromhex("feffffea")
Content = dict[str, object]


def word(*values: int) -> bytes:
    return struct.pack(f">{len(values)}I", *values)


def node(name: str, content: Content) -> Node:
    """A node of a dictionary: dictionaries in it are nodes, the rest are properties."""
    made = Node(name)
    for key, value in content.items():
        if isinstance(value, dict):
            made.children.append(node(key, value))
        else:
            made.properties[key] = value  # type: ignore[assignment]
    return made


def blob(content: Content) -> bytes:
    return write_tree(node("", content))


def override(*changes: tuple[int, str]) -> bytes:
    return b"".join(word(handle) + text.encode() + b"\0" for handle, text in changes)


BASE: Content = {
    "#address-cells": word(1),
    "#size-cells": word(1),
    "aliases": {"serial0": "/soc/serial@7e201000"},
    "chosen": {"bootargs": "quiet"},
    "soc": {
        "phandle": word(1),
        "serial@7e201000": {"phandle": word(2), "status": "okay", "reg": word(0x7E201000, 0x200)},
        "i2c@7e804000": {"status": "disabled", "clock-frequency": word(100000)},
    },
    "__symbols__": {"soc": "/soc", "uart0": "/soc/serial@7e201000", "i2c1": "/soc/i2c@7e804000"},
    "__overrides__": {
        "i2c": override((2, "status"), (1, "i2c?")),
        "uart0": override((2, "status")),
        "uart0_address": override((2, "reg:0")),
        "mac": override((1, "local-mac-address[0")),
        "half": override((1, "half;2")),
        "nibble": override((1, "byte.1")),
        "wide": override((1, "wide#0")),
        "fixed": override((1, "fixed:0=77")),
        "off": override((1, "off!")),
        "label": override((1, "label")),
    },
}
SENSOR: Content = {
    "compatible": "brcm,bcm2835",
    "fragment@0": {
        "phandle": word(2),
        "target": word(0xFFFFFFFF),
        "__overlay__": {
            "status": "okay",
            "#address-cells": word(1),
            "sensor@48": {"phandle": word(1), "reg": word(0x48), "parent": word(0xFFFFFFFF)},
        },
    },
    "fragment@1": {"target-path": "/chosen", "__overlay__": {"bootargs": "more", "sensor": word(1)}},
    "fragment@2": {"target-path": "/", "__dormant__": {"extra": word(5)}},
    "__symbols__": {"mine": "/fragment@0/__overlay__/sensor@48"},
    "__fixups__": {
        "i2c1": "/fragment@0:target:0\0/fragment@0/__overlay__/sensor@48:parent:0",
        "uart0": "/__overrides__:elsewhere:14\0/__overrides__:silent:0",
    },
    "__local_fixups__": {
        "fragment@1": {"__overlay__": {"sensor": word(0)}},
        "__overrides__": {"address": word(0), "name": word(0), "elsewhere": word(0)},
    },
    "__overrides__": {
        "address": override((1, "reg:0")),
        "extra": override((0, "=2")),
        "less": override((0, "-1")),
        "name": override((1, "name")),
        "elsewhere": word(2) + b"target:0=\0" + word(0xFFFFFFFF),
        "silent": override((0xFFFFFFFF, "status")),
    },
}


def boot(
    folder: Path, config: str, overlays: dict[str, bytes | Content], base: Content = BASE
) -> tuple[Tree, list[str]]:
    """The tree that the program gets, and what was said."""
    (folder / "kernel8.img").write_bytes(HALT * 4)
    (folder / "bcm2710-rpi-3-b.dtb").write_bytes(blob(base))
    (folder / "overlays").mkdir(exist_ok=True)
    for name, content in overlays.items():
        data = content if isinstance(content, bytes) else blob(content)
        (folder / "overlays" / f"{name}.dtbo").write_bytes(data)
    (folder / "config.txt").write_text(f"arm_64bit=1\n{config}")
    reporter = Reporter()
    plan = plan_boot(folder, BOARDS["pi3"], reporter)
    said = [f"{item.code}: {item.message}" for item in reporter.items]
    return read_tree(plan.pieces[-1].data), said


def properties(tree: Node, path: str) -> dict[str, object]:
    found = at_path(tree, path)
    assert found is not None, path
    return dict(found.properties)


def test_an_overlay_is_merged(tmp_path: Path) -> None:
    tree, said = boot(tmp_path, "dtoverlay=sensor\n", {"sensor": SENSOR})
    assert not said
    bus = properties(tree, "/soc/i2c@7e804000")
    assert bus["status"] == b"okay\0"
    assert bus["clock-frequency"] == word(100000)
    sensor = properties(tree, "/soc/i2c@7e804000/sensor@48")
    assert sensor["parent"] == bus["phandle"]  # the label had no number: it gets one
    assert bus["phandle"] not in (word(1), word(2), sensor["phandle"])
    chosen = properties(tree, "/chosen")
    assert chosen["sensor"] == sensor["phandle"]  # a number of its own, made distinct
    assert chosen["bootargs"] == b"quiet more\0"
    assert "extra" not in tree.properties
    assert properties(tree, "/__symbols__")["mine"] == b"/soc/i2c@7e804000/sensor@48\0"


def test_a_later_overlay_uses_the_labels_of_an_earlier_one(tmp_path: Path) -> None:
    child: Content = {
        "fragment@0": {"target": word(0xFFFFFFFF), "__overlay__": {"child": {"a": word(7)}}},
        "__fixups__": {"mine": "/fragment@0:target:0"},
    }
    overlays: dict[str, bytes | Content] = {"sensor": SENSOR, "child": child}
    tree, said = boot(tmp_path, "dtoverlay=sensor\ndtoverlay=child\n", overlays)
    assert not said
    assert properties(tree, "/soc/i2c@7e804000/sensor@48/child")["a"] == word(7)


def test_parameters_of_an_overlay(tmp_path: Path) -> None:
    lines = "dtoverlay=sensor,address=0x4a\ndtparam=extra,less=1\n"
    tree, said = boot(tmp_path, lines, {"sensor": SENSOR})
    assert not said
    assert properties(tree, "/soc/i2c@7e804000/sensor@4a")["reg"] == word(0x4A)
    assert tree.properties["extra"] == word(5)
    assert "sensor" not in properties(tree, "/chosen")
    tree, said = boot(tmp_path, "dtoverlay=sensor:name=probe\n", {"sensor": SENSOR})
    assert not said
    assert at_path(tree, "/soc/i2c@7e804000/probe") is not None


def test_a_parameter_puts_a_fragment_elsewhere(tmp_path: Path) -> None:
    tree, said = boot(tmp_path, "dtoverlay=sensor,elsewhere,silent=no\n", {"sensor": SENSOR})
    assert not said
    assert at_path(tree, "/soc/serial@7e201000/sensor@48") is not None
    assert at_path(tree, "/soc/i2c@7e804000/sensor@48") is None
    # the card's node is switched off by the parameter, and on again by the fragment
    assert properties(tree, "/soc/serial@7e201000")["status"] == b"okay\0"


def test_parameters_of_the_cards_tree(tmp_path: Path) -> None:
    lines = (
        "dtparam=uart0=off,uart0_address=0x7e201400\ndtparam=mac=b8:27:eb:00:00:01\n"
        "dtparam=half=0x1234\ndtparam=nibble=7\ndtparam=wide=-1\ndtparam=fixed=5\n"
        "dtparam=off=no\ndtparam=label=a text\ndtparam=i2c\n"
    )
    tree, said = boot(tmp_path, lines, {})
    assert not said
    serial = properties(tree, "/soc/serial@7e201400")
    assert serial["status"] == b"okay\0"  # the later line counts
    assert serial["reg"] == word(0x7E201400, 0x200)
    soc = properties(tree, "/soc")
    assert soc["local-mac-address"] == bytes.fromhex("b827eb000001")
    assert soc["half"] == bytes.fromhex("00001234")
    assert soc["byte"] == b"\0\x07"
    assert soc["wide"] == b"\xff" * 8
    assert soc["fixed"] == word(77)
    assert soc["off"] == b""
    assert soc["label"] == b"a text\0"
    assert soc["i2c"] == b""
    tree, said = boot(tmp_path, "dtparam=i2c=off\ndtparam=off=yes\n", {})
    assert string_of(at_path(tree, "/soc/serial@7e201000").properties["status"]) == "disabled"
    assert not {"i2c", "off"} & {*properties(tree, "/soc")}


def test_an_empty_overlay_line_ends_an_overlays_parameters(tmp_path: Path) -> None:
    lines = "dtoverlay=sensor\ndtparam=address=9\ndtoverlay=\ndtparam=uart0=off\n"
    tree, said = boot(tmp_path, lines, {"sensor": SENSOR})
    assert not said
    assert properties(tree, "/soc/serial@7e201000")["status"] == b"disabled\0"


def test_other_places_for_overlays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sensor.dtbo").write_bytes(blob(SENSOR))
    lines = "overlay_prefix=mine/\ndevice_tree_overlay=sensor\ndevice_tree_param=extra=yes\n"
    tree, said = boot(tmp_path, lines, {})
    assert not said
    assert tree.properties["extra"] == word(5)


BROKEN = {
    "missing": (None, "there is no overlays/broken.dtbo on the card"),
    "text": (b"no tree", "not a device tree"),
    "label": (
        SENSOR | {"__fixups__": {"nothing": "/fragment@0:target:0"}},
        "it needs the label nothing, which this device tree has not",
    ),
    "place": (SENSOR | {"__fixups__": {"i2c1": "/fragment@0:target:1"}}, "names a place that is not there"),
    "property": (
        SENSOR | {"__fixups__": {"i2c1": "/fragment@9:target:0"}},
        "__fixups__ has a place that is not there",
    ),
    "path": (
        {"fragment@0": {"target-path": "/none", "__overlay__": {}}},
        "fragment@0: the tree has no /none",
    ),
    "target": ({"fragment@0": {"__overlay__": {}}}, "fragment@0 names no node of the tree"),
    "local": (
        SENSOR | {"__local_fixups__": {"fragment@1": {"__overlay__": {"sensor": word(4)}}}},
        "names a place that is not there",
    ),
    "local node": (SENSOR | {"__local_fixups__": {"none": {}}}, "names none, which is not there"),
    "handles": ({"a": {"phandle": word(0xFFFFFFEF)}}, "its phandles leave no room"),
}


@pytest.mark.parametrize(("content", "text"), BROKEN.values(), ids=BROKEN)
def test_an_overlay_that_does_not_fit_is_left_out(
    tmp_path: Path, content: bytes | Content | None, text: str
) -> None:
    before, _ = boot(tmp_path, "", {})
    overlays = {} if content is None else {"broken": content}
    tree, said = boot(tmp_path, "dtoverlay=broken\n", overlays)
    assert [one.partition(":")[0] for one in said] == ["BOOT-032"]
    assert text in said[0]
    assert "config.txt line 2" in said[0]
    assert write_tree(tree) == write_tree(before)


def test_a_tree_without_labels_says_so(tmp_path: Path) -> None:
    base = {key: value for key, value in BASE.items() if not key.startswith("__")}
    lines = "dtparam=audio=on\ndtoverlay=sensor\n"
    _tree, said = boot(tmp_path, lines, {"sensor": SENSOR}, base)
    assert said[0] == (
        "BOOT-033: config.txt line 2: dtparam: parameter audio: this device tree has no parameters"
    )
    assert "has no labels (compiled without -@)" in said[1]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("dtparam=audio=on", "BOOT-033: config.txt line 2: dtparam: there is no parameter audio"),
        ("dtparam=off=perhaps", "'perhaps' is neither on nor off"),
        ("dtparam=uart0_address=here", "'here' is neither on nor off"),
        ("dtparam=mac=xyz", "'xyz' is not a row of bytes"),
        ("dtparam=table=1", "tables of values are not supported"),
        ("dtparam=strange=1", "'a b' is not understood"),
        ("dtparam=far=1", "writes at byte 999999 of a property"),
        ("dtparam=nowhere=1", "names a node that is not there"),
        ("dtparam=none=1", "there is no fragment 7"),
        ("dtparam=kind=1", "'*7' is not understood"),
        ("dtparam=damaged=1", "parameter damaged is damaged"),
    ],
)
def test_parameters_that_cannot_be_set(tmp_path: Path, line: str, text: str) -> None:
    more = {
        "table": override((1, "a:0={1=2}")),
        "strange": override((1, "a b")),
        "far": override((1, "a:999999")),
        "nowhere": override((99, "a")),
        "none": override((0, "=7")),
        "kind": override((0, "*7")),
        "damaged": word(1) + b"no end",
    }
    base = BASE | {"__overrides__": {**BASE["__overrides__"], **more}}  # type: ignore[dict-item]
    _tree, said = boot(tmp_path, f"{line}\n", {}, base)
    assert len(said) == 1
    assert text in said[0]


def test_too_many_lines(tmp_path: Path) -> None:
    _tree, said = boot(tmp_path, "dtoverlay=sensor\ndtoverlay=\n" * 200, {"sensor": SENSOR})
    assert any("only 100 are used" in one for one in said)


GOOD = blob(SENSOR)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6))
def test_damaged_overlays_end_in_a_tree_or_a_message(changes: list[tuple[int, int]]) -> None:
    from vc4lab.soc.boot.tree.device_tree import BadTree
    from vc4lab.soc.boot.tree.overlays import BadOverlay, Overlay
    from vc4lab.soc.boot.tree.parameters import set_parameter

    data = bytearray(GOOD)
    for at, value in changes:
        data[at] = value
    tree = read_tree(blob(BASE))
    try:
        overlay = Overlay(read_tree(bytes(data)), tree)
        set_parameter(overlay.root, "address", "5")
        set_parameter(overlay.root, "extra", "on")
        overlay.merge()
    except (BadOverlay, BadTree):
        return
    read_tree(write_tree(tree))
