"""docs/drm_ioctls.md, from the declarations of the ioctls (`python -m vc4lab.cli.ioctls_page`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vc4lab.drm.uapi.ioctls import Ioctl

HEAD = """\
# Ioctls of the virtual devices

Generated from the declarations: `python -m vc4lab.cli.ioctls_page > docs/drm_ioctls.md`. *Who* may
call it: every open file, files of the card only, or the one that has the display. The same number
may mean different calls in two drivers.
"""
INPUT_HEAD = """\
## Input devices

Those of `/dev/input/event0` (keyboard) and `event1` (pointer), type 'E'. *Bytes*: `any` where the
program chooses the size.

| number | name | bytes | fields |
| --- | --- | --- | --- |"""
TITLES = (("Both displays, vc4 and xlnx", ("vc4", "xlnx")), ("Only vc4", ("vc4",)), ("Only xlnx", ("xlnx",)))


def write_page() -> str:
    """The page's text."""
    from vc4lab.drm.device.device import DrmDevice
    from vc4lab.drm.device.drivers import NAMES

    tables: dict[str, dict[int, Ioctl]] = {}
    for name in NAMES:
        with DrmDevice(device=name) as device:
            tables[name] = {number: ioctl for number, (ioctl, _) in device.table.items()}
    lines = [HEAD]
    for title, devices in TITLES:
        lines += [f"## {title}", "", "| number | name | bytes | who | fields |"]
        lines.append("| --- | --- | --- | --- | --- |")
        lines += _rows(_having(tables, devices))
        lines.append("")
    lines += [INPUT_HEAD, *_input_rows()]
    return "\n".join(lines) + "\n"


def _having(tables: dict[str, dict[int, Ioctl]], devices: tuple[str, ...]) -> list[Ioctl]:
    """The ioctls that these devices have, and no other."""
    return [
        ioctl
        for number, ioctl in tables[devices[0]].items()
        if tuple(
            name for name, table in tables.items() if number in table and table[number].name == ioctl.name
        )
        == devices
    ]


def _rows(declared: Iterable[Ioctl]) -> Iterable[str]:
    for ioctl in sorted(declared, key=lambda ioctl: ioctl.number):
        who = "display" if ioctl.master else "every" if ioctl.render else "card"
        yield (f"| 0x{ioctl.number:02X} | {ioctl.name} | {ioctl.structure.size} | {who} | {_fields(ioctl)} |")


def _input_rows() -> Iterable[str]:
    from vc4lab.drm.input.ioctls import EvdevIoctls

    for evdev, _ in dict.fromkeys(EvdevIoctls().table.values()):
        last = evdev.number + evdev.numbers - 1
        numbers = f"0x{evdev.number:02X}" + (f"-0x{last:02X}" if evdev.numbers > 1 else "")
        yield (
            f"| {numbers} | {evdev.name} | {'any' if evdev.any_size else evdev.structure.size} | "
            f"{_fields(evdev)} |"
        )


def _fields(ioctl: Ioctl) -> str:
    structure = ioctl.structure
    return ", ".join(f"{structure.types[n]} {n}" for n in structure.names) or "-"


if __name__ == "__main__":
    print(write_page(), end="")
