"""docs/drm_ioctls.md, from the declarations of the ioctls (`python -m vc4lab.cli.ioctls_page`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vc4lab.drm.uapi.ioctls import Ioctl


def write_page() -> str:
    """The page's text."""
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.drm.input.ioctls import EvdevIoctls

    with DrmDevice() as device:
        declared = [ioctl for ioctl, _ in device.table.values()]
    lines = [
        "# Ioctls of the virtual device",
        "",
        "Made from the declarations: `python -m vc4lab.cli.ioctls_page > docs/drm_ioctls.md`. "
        "*Who*: every file, files of",
        "the card only, or the one that has the display.",
        "",
        "| number | name | bytes | who | fields |",
        "| --- | --- | --- | --- | --- |",
    ]
    for ioctl in sorted(declared, key=lambda ioctl: ioctl.number):
        who = "display" if ioctl.master else "every" if ioctl.render else "card"
        lines.append(
            f"| 0x{ioctl.number:02X} | {ioctl.name} | {ioctl.structure.size} | {who} | "
            f"{_fields(ioctl)} |"
        )
    lines += [
        "",
        "## Input devices",
        "",
        "Those of `/dev/input/event0` (keyboard) and `event1` (pointer), type 'E'. *Bytes*: `any` "
        "where the program says how much room there is.",
        "",
        "| number | name | bytes | fields |",
        "| --- | --- | --- | --- |",
    ]
    for evdev, _ in dict.fromkeys(EvdevIoctls().table.values()):
        last = evdev.number + evdev.numbers - 1
        numbers = f"0x{evdev.number:02X}" + (f"-0x{last:02X}" if evdev.numbers > 1 else "")
        lines.append(
            f"| {numbers} | {evdev.name} | {'any' if evdev.any_size else evdev.structure.size} | "
            f"{_fields(evdev)} |"
        )
    return "\n".join(lines) + "\n"


def _fields(ioctl: Ioctl) -> str:
    structure = ioctl.structure
    return ", ".join(f"{structure.types[n]} {n}" for n in structure.names) or "-"


if __name__ == "__main__":
    print(write_page(), end="")
