"""The nodes of a GPU and a display: what libdrm, libudev, gbm and display servers look at."""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.drm.nodes.tree import Node, Tree

MAJOR = 226
MINORS = {"card0": 0, "card1": 1, "renderD128": 128}
BUS = "/sys/bus/platform"
SOC = "/sys/devices/platform/soc"
AMBA = "/sys/devices/platform/amba"
CONNECTOR = "/sys/class/drm/card0-HDMI-A-1"
ASKED_STATUS = ("on-digital", "on", "off", "detect")
"""Words that Linux takes there: a screen is there, is not, or whatever is plugged in."""
DISPLAY = f"{AMBA}/fd4a0000.display/xlnx-drm.0"


def platform_gpu() -> Tree:
    """The tree of a Pi: its GPU has the card and a render node."""
    tree = Tree()
    begin_tree(tree)
    add_gpu(tree, f"{SOC}/soc:gpu", "/soc/gpu", ("card0", "renderD128"), "HDMI-A-1")
    return tree


def zynqmp() -> Tree:
    """The tree of a ZynqMP: its display is card0; the GPU, here the V3D, has nodes of its own."""
    tree = Tree()
    begin_tree(tree)
    add_device(tree, DISPLAY, "xlnx-drm", "DRIVER=xlnx-drm\n", "platform:xlnx-drm", ("card0",), "HDMI-A-1")
    add_gpu(tree, f"{AMBA}/amba:gpu", "/amba/gpu", ("card1", "renderD128"))
    tree.directory("/sys/module", over_host=True)
    return tree


def add_gpu(tree: Tree, device: str, full_name: str, nodes: Sequence[str], connector: str = "") -> None:
    """A VideoCore IV as a platform device with driver vc4."""
    compatible = "brcm,bcm2835-vc4"
    uevent = (
        f"DRIVER=vc4-drm\nOF_NAME=gpu\nOF_FULLNAME={full_name}\n"
        f"OF_COMPATIBLE_0={compatible}\nOF_COMPATIBLE_N=1\n"
    )
    add_device(tree, device, "vc4-drm", uevent, f"of:NgpuT(null)C{compatible}", nodes, connector)


def begin_tree(tree: Tree) -> None:
    """The directories above all devices."""
    for path in ("/sys/class", "/sys/bus", BUS, f"{BUS}/drivers", f"{BUS}/devices"):
        tree.directory(path, over_host=True)
    tree.directory("/sys/dev/char", over_host=True)
    tree.directory("/sys/class/drm")
    tree.directory("/dev/dri")
    tree.directory("/run/udev", over_host=True)
    tree.file("/run/udev/control", "")  # libudev's monitor listens where it finds this


def add_device(
    tree: Tree,
    device: str,
    driver: str,
    uevent: str,
    modalias: str,
    nodes: Sequence[str],
    connector: str = "",
) -> None:
    """A platform device with its nodes; a connector belongs to the first of them."""
    name = device.rpartition("/")[2]
    tree.file(f"{device}/uevent", f"{uevent}MODALIAS={modalias}\n")
    tree.file(f"{device}/modalias", f"{modalias}\n")
    tree.link(f"{device}/subsystem", BUS)
    tree.link(f"{device}/driver", f"{BUS}/drivers/{driver}")
    tree.link(f"{BUS}/drivers/{driver}/{name}", device)
    tree.link(f"{BUS}/devices/{name}", device)
    tree.directory(f"{device}/drm")
    for node in nodes:
        minor = MINORS[node]
        place = f"{device}/drm/{node}"
        tree.link(f"{place}/device", device)
        tree.link(f"{place}/subsystem", "/sys/class/drm")
        tree.file(f"{place}/dev", f"{MAJOR}:{minor}\n")
        tree.file(f"{place}/uevent", f"MAJOR={MAJOR}\nMINOR={minor}\nDEVNAME=dri/{node}\nDEVTYPE=drm_minor\n")
        tree.link(f"/sys/class/drm/{node}", place)
        tree.link(f"/sys/dev/char/{MAJOR}:{minor}", place)
        tree.device(f"/dev/dri/{node}", node, (MAJOR, minor))
    if connector:
        _add_connector(tree, f"{device}/drm/{nodes[0]}", f"{nodes[0]}-{connector}")


def show_plug(tree: Tree, plugged: bool) -> None:
    """Say in sysfs whether a screen is plugged in."""
    place = CONNECTOR
    for name, texts in (("status", ("disconnected", "connected")), ("enabled", ("disabled", "enabled"))):
        node = tree.resolve(f"{place}/{name}")
        if isinstance(node, Node):
            tree.set_text(node.path, f"{texts[plugged]}\n")


def asked_status(tree: Tree) -> str | None:
    """Read what a program has written into the connector's status since it was shown: one of
    `ASKED_STATUS`, or "" for anything else; None for nothing.
    """
    node = tree.resolve(f"{CONNECTOR}/status")
    text = tree.text_of(node.path) if isinstance(node, Node) else ""
    if not text or text in ("connected\n", "disconnected\n"):
        return None
    return next((word for word in ASKED_STATUS if text.startswith(word)), "")


def _add_connector(tree: Tree, card: str, name: str) -> None:
    place = f"{card}/{name}"
    tree.file(f"{place}/status", "connected\n", is_writable=True)
    tree.file(f"{place}/enabled", "enabled\n")
    tree.file(f"{place}/uevent", "DEVTYPE=drm_connector\n")
    tree.link(f"{place}/device", card)
    tree.link(f"{place}/subsystem", "/sys/class/drm")
    tree.link(f"/sys/class/drm/{name}", place)
