"""QEMU's options: `vc4lab boot -M raspi2b -kernel F -serial stdio` as vc4lab's own.

Only what people type for the Pi machines; what has no meaning here is reported, not an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from vc4lab.ranges import PORT
from vc4lab.soc.board import SYNONYMS

MACHINES = {name: board for name, board in SYNONYMS.items() if name.startswith("raspi")}
"""QEMU's machine names → vc4lab's boards."""
GDB_PORT = 1234
IGNORED = frozenset(
    """
    daemonize enable-kvm full-screen no-reboot no-shutdown no-user-config nodefaults semihosting
    singlestep snapshot usb
    """.split()  # noqa: SIM905
)
"""Options without a value that are left out."""
SINGLE_DASH = IGNORED.union(
    """
    M machine kernel bios serial display nographic gdb s S m smp cpu dtb append initrd drive sd d D
    device accel audio audiodev boot chardev global icount k L mon monitor msg name net netdev nic
    object parallel pidfile plugin qmp rtc seed semihosting-config trace usbdevice vga vnc
    """.split()  # noqa: SIM905
)
SAME = {"append": "--append", "initrd": "--initrd", "dtb": "--dtb", "D": "--trace-to"}


def is_qemu(arguments: Sequence[str]) -> bool:
    """Whether the arguments of `boot` are written as for QEMU."""
    return any(
        word[:1] == "-" and word[1:2] != "-" and word[1:].partition("=")[0] in SINGLE_DASH
        for word in arguments
    )


def translate(arguments: Sequence[str]) -> tuple[list[str], list[str]]:  # noqa: C901
    """QEMU's arguments as those of `vc4lab boot`, and sentences about what was left out.

    Our own options (two dashes) and paths pass unchanged. Raises ValueError with a sentence.
    """
    out: list[str] = []
    remarks: list[str] = []
    rest = list(arguments)
    port: int | None = None
    frozen = False
    serial: str | None = None  # both UARTs are on one line: the first that goes anywhere
    while rest:
        word = rest.pop(0)
        name = word[1:]
        if word[:1] != "-" or word[:2] == "--" or name not in SINGLE_DASH:
            out.append(word)
        elif name in ("M", "machine"):
            machine = _value(word, rest).split(",")[0].removeprefix("type=")
            if machine not in MACHINES:
                raise ValueError(f"{word} {machine}: the machines are {', '.join(MACHINES)}")
            out += ["--board", MACHINES[machine]]
        elif name in ("kernel", "bios"):
            out.append(_value(word, rest))
        elif name == "device":
            loaded, remark = _loader(_value(word, rest))
            out += loaded if loaded and loaded[0] not in out else []
            remarks += [remark] if remark else []
        elif name in SAME:
            out += [SAME[name], _value(word, rest)]
        elif name == "d":
            items = _value(word, rest)
            out += ["--trace", "irq"] if "int" in items.split(",") else []
            if items != "int":
                remarks.append(f"{word} {items}: only exceptions (int) can be traced")
        elif name in ("drive", "sd"):
            image = _file_of(_value(word, rest))
            if image:
                out += ["--card", image] if "-kernel" in arguments else [image]
        elif name == "serial":
            value = _serial(_value(word, rest))
            serial = value if serial in (None, "none") else serial
        elif name == "nographic":
            out.append("--headless")
            serial = serial or "stdio"
        elif name == "display":
            value = _value(word, rest).split(",")[0]
            out.append("--headless" if value == "none" else "--window")
        elif name == "s":
            port = GDB_PORT
        elif name == "gdb":
            port = _gdb_port(_value(word, rest))
        elif name == "S":
            frozen = True
        elif name in IGNORED:
            remarks.append(f"{word} has no meaning here")
        else:
            remarks.append(f"{word} {_value(word, rest)} has no meaning here")
    if serial is not None:
        out += ["--serial", serial]
    if frozen and port is None:
        port = GDB_PORT
        remarks.append(f"-S waits for a debugger on port {GDB_PORT}")
    if port is not None:
        out += ["--gdb", str(port), "--gdb-wait" if frozen else "--no-gdb-wait"]
    return out, remarks


def _value(word: str, rest: list[str]) -> str:
    if not rest:
        raise ValueError(f"{word} needs a value")
    return rest.pop(0)


def _serial(value: str) -> str:
    """One of `--serial`'s places."""
    value = value.removeprefix("mon:")
    if value in ("stdio", "pty", "none", "null"):
        return "none" if value == "null" else value
    if value.startswith(("file:", "tcp:")):
        return value
    raise ValueError(f"-serial {value}: the choices are stdio, pty, tcp::PORT, file:F and null")


def _gdb_port(value: str) -> int:
    port = value.split(",")[0].rpartition(":")[2]
    if not port.isdecimal() or len(port) > 5 or int(port) > PORT.most:
        raise ValueError(f"-gdb {value}: only tcp::PORT is supported")
    return int(port)


def _loader(value: str) -> tuple[list[str], str | None]:
    """-device loader,file=F,addr=A,…: an image and where it goes; else a sentence."""
    kind, _, rest = value.partition(",")
    parts = dict(part.partition("=")[::2] for part in rest.split(","))
    if kind != "loader" or not parts.get("file"):
        return [], f"-device {value} has no meaning here"
    place = ["--load-address", parts["addr"]] if parts.get("addr") else []
    return [parts["file"], *place], None


def _file_of(value: str) -> str:
    """The file of "file=F,if=sd,format=raw" or of a plain path."""
    parts = dict(part.partition("=")[::2] for part in value.split(",") if "=" in part)
    return parts.get("file", "" if parts else value)
