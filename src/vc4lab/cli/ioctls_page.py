"""docs/drm_ioctls.md, from the declarations of the ioctls (`python -m vc4lab.cli.ioctls_page`)."""

from __future__ import annotations


def write_page() -> str:
    """The page's text."""
    from vc4lab.drm.device.device import DrmDevice

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
        fields = ", ".join(f"{ioctl.structure.types[n]} {n}" for n in ioctl.structure.names)
        lines.append(
            f"| 0x{ioctl.number:02X} | {ioctl.name} | {ioctl.structure.size} | {who} | "
            f"{fields or '-'} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(write_page(), end="")
