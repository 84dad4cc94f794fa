"""The nodes of input devices: what evdev clients, libudev and libinput look at."""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.drm.input.devices import EvdevDevice
from vc4lab.drm.nodes.tree import Tree
from vc4lab.drm.uapi import evdev as e

CLASS, DEVICES = "/sys/class/input", "/sys/devices/virtual/input"
UDEV_DATA = "/run/udev/data"
_CAPABILITIES = {
    "ev": e.EV_SYN, "key": e.EV_KEY, "rel": e.EV_REL, "abs": e.EV_ABS, "msc": e.EV_MSC,
    "sw": e.EV_SW, "led": e.EV_LED, "snd": e.EV_SND, "ff": e.EV_FF,
}  # fmt: skip


def add_input_nodes(tree: Tree, devices: Sequence[EvdevDevice]) -> None:
    """Show these input devices, and none of the host's."""
    for path in ("/dev/input", CLASS, DEVICES):
        tree.directory(path)
    tree.directory("/sys/class", over_host=True)
    tree.directory(UDEV_DATA, over_host=True)
    for device in devices:
        _add(tree, device)


def _add(tree: Tree, device: EvdevDevice) -> None:
    parent = f"{DEVICES}/input{device.number}"
    place = f"{parent}/{device.node}"
    major, minor = device.numbers
    tree.file(f"{parent}/name", device.name + "\n")
    tree.file(f"{parent}/phys", device.place + "\n")
    tree.file(f"{parent}/uniq", "\n")
    tree.file(f"{parent}/properties", "0\n")
    fields = ("bustype", "vendor", "product", "version")
    for name, value in zip(fields, device.identity, strict=True):
        tree.file(f"{parent}/id/{name}", f"{value:04x}\n")
    about = [
        "PRODUCT=" + "/".join(f"{value:x}" for value in device.identity),
        f'NAME="{device.name}"',
        f'PHYS="{device.place}"',
        "PROP=0",
    ]
    for name, kind in _CAPABILITIES.items():
        words = _words(device.bits(kind))
        tree.file(f"{parent}/capabilities/{name}", words + "\n")
        if kind == e.EV_SYN or kind in device.codes:
            about.append(f"{name.upper()}={words}")
    tree.file(f"{parent}/uevent", "\n".join(about) + "\n")
    tree.link(f"{parent}/subsystem", CLASS)
    tree.link(f"{CLASS}/input{device.number}", parent)
    tree.file(f"{place}/dev", f"{major}:{minor}\n")
    tree.file(f"{place}/uevent", f"MAJOR={major}\nMINOR={minor}\nDEVNAME=input/{device.node}\n")
    tree.link(f"{place}/device", parent)
    tree.link(f"{place}/subsystem", CLASS)
    tree.link(f"{CLASS}/{device.node}", place)
    tree.link(f"/sys/dev/char/{major}:{minor}", place)
    tree.device(f"/dev/input/{device.node}", device.node, device.numbers)
    found = "I:1\n" + "".join(f"E:{text}\n" for text in device.udev)
    tree.file(f"{UDEV_DATA}/c{major}:{minor}", found)
    tree.file(f"{UDEV_DATA}/+input:input{device.number}", found)


def _words(bits: bytes) -> str:
    """Words of 64 bits in hexadecimal, the highest first, as sysfs has them."""
    words = [int.from_bytes(bits[at : at + 8], "little") for at in range(0, len(bits), 8)]
    while len(words) > 1 and not words[-1]:
        words.pop()
    return " ".join(f"{word:x}" for word in reversed(words))
