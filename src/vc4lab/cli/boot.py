"""`vc4lab boot`: run a bare-metal program on a simulated Pi."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from vc4lab.cli.capturing import CaptureOptions
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.groups import Without
from vc4lab.cli.options import FILE, Address, Number, unknowns_of
from vc4lab.cli.outputs import PictureOptions
from vc4lab.cli.qemu import is_qemu, translate
from vc4lab.cli.settings import InstrumentOptions, Settings
from vc4lab.cli.timing_options import LiveTimingOptions
from vc4lab.ranges import ADDRESS, SECONDS

if TYPE_CHECKING:
    from vc4lab.diagnostics.unknown import Unknowns
    from vc4lab.soc.pins import PinLevel


class BootCommand(TyperCommand):
    """`boot`, which also takes what people type for QEMU."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Translate before the options are looked at."""
        if is_qemu(args):
            try:
                args, remarks = translate(args)
            except ValueError as error:
                raise typer.BadParameter(str(error), ctx) from None
            for remark in remarks:
                typer.echo(f"vc4lab: {remark}", err=True)
        return super().parse_args(ctx, args)


COMMAND = BootCommand


class CacheMode(StrEnum):
    """Names the models of caches: `check` reports reads of old bytes, `stale` also delivers them."""

    CHECK = "check"
    STALE = "stale"


class RamContents(StrEnum):
    """Names the contents of RAM at power-on."""

    NOISE = "noise"
    ZERO = "zero"


class Firmware(StrEnum):
    """The year of the board's firmware."""

    TODAY = "today"
    OF_2015 = "2015"


def _unknowns(firmware: Firmware, texts: list[str]) -> Unknowns:
    """Return the choices for unknowns: those of a firmware of another year, with `--unknown` above them."""
    if not texts and firmware is Firmware.TODAY:
        from vc4lab.diagnostics.unknown import DEFAULT_UNKNOWNS

        return DEFAULT_UNKNOWNS
    from vc4lab.soc.options import choices_of

    chosen = [f"{name}={choice}" for name, choice in choices_of(firmware.value).items()]
    return unknowns_of([*chosen, *texts])


def _pin(text: str) -> PinLevel:
    """`10=1` or `21=0@0.5`."""
    from vc4lab.soc.pins import PinLevel

    found = re.fullmatch(r"(\d{1,3})=(\d{1,3})(?:@([0-9.eE+-]{1,30}))?", text.strip())
    if found is None:
        shown = "".join(c if c.isprintable() else "?" for c in text[:40])
        raise typer.BadParameter(f"--gpio: {shown!r} is not PIN=LEVEL or PIN=LEVEL@SECONDS.")
    try:
        return PinLevel(int(found[1]), int(found[2]), float(found[3] or 0))
    except ValueError as error:
        raise typer.BadParameter(f"--gpio: {error}.") from None


def boot(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="DIR_OR_IMAGE", help="Folder with an SD card's files, or a kernel image.", parser=FILE
        ),
    ],
    board: Annotated[str, typer.Option(help="The board.")] = "pi2",
    *,
    gpu: GpuGroup,
    pictures: PictureOptions,
    instruments: InstrumentOptions,
    captured: CaptureOptions,
    timed: Annotated[LiveTimingOptions, Without("timing_slower")],
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds of guest time.", parser=Number(SECONDS))
    ] = None,
    serial: Annotated[
        str | None,
        typer.Option(
            help="Serial line: stdio (with the keyboard), a pseudo terminal, a loopback port, "
            "none, or a file. Default: print the output.",
            metavar="stdio|pty|tcp:PORT|none|FILE",
        ),
    ] = None,
    realtime: Annotated[bool, typer.Option("--realtime", help="Run no faster than the real board.")] = False,
    forgiving: Annotated[
        bool,
        typer.Option(
            "--forgiving",
            help="Let work what fails on a board but used to work here, see docs/diagnostics.md.",
        ),
    ] = False,
    card: Annotated[
        Path | None,
        typer.Option(
            help="The SD card in the slot. Default: what is booted.", metavar="DIR_OR_IMAGE", parser=FILE
        ),
    ] = None,
    caches: Annotated[
        CacheMode | None,
        typer.Option(help="Model the caches: check reports reads of old bytes, stale also delivers them."),
    ] = None,
    ram: Annotated[
        RamContents | None,
        typer.Option(
            help="What RAM holds at power-on. Default: zero; with --strict noise, which shows "
            "variables that are used before they are set."
        ),
    ] = None,
    firmware: Annotated[
        Firmware, typer.Option(help="2015: behave like that year's firmware, for programs of that time.")
    ] = Firmware.TODAY,
    append: Annotated[
        str | None, typer.Option(help="Command line, instead of cmdline.txt.", metavar="TEXT")
    ] = None,
    initrd: Annotated[
        Path | None, typer.Option(help="RAM disk, instead of config.txt's.", metavar="FILE", parser=FILE)
    ] = None,
    dtb: Annotated[
        Path | None, typer.Option(help="Device tree, instead of the card's.", metavar="F.dtb", parser=FILE)
    ] = None,
    load_address: Annotated[
        int | None,
        typer.Option(
            help="Load address and entry point of a kernel image.",
            metavar="0x8000",
            parser=Address(ADDRESS, multiple=4),
        ),
    ] = None,
    gpio: Annotated[
        list[str] | None,
        typer.Option(
            help="Connect a GPIO pin to a level, from the start or a moment of guest time on, as "
            "a button does: 21=0@0.5. Can be repeated.",
            metavar="PIN=0|1[@SECONDS]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a bare-metal program: its serial output, its picture, and why it hangs.

    Without --frames and --seconds it runs until the program ends, hangs, or Ctrl-C. QEMU's
    -M raspi2b -kernel F -serial stdio -display none -s -S are understood too.
    """
    from vc4lab.cli.session import run_session
    from vc4lab.soc.boot.boot_extras import BootExtras
    from vc4lab.soc.options import MachineOptions

    try:
        extras = BootExtras(append, initrd, dtb, load_address)
    except ValueError as error:
        raise typer.BadParameter(f"--append: {error}.") from None
    unknowns = _unknowns(firmware, gpu.unknown or [])
    settings = Settings(
        path,
        MachineOptions(
            board, card, caches and caches.value, extras,
            gpu.options(unknowns=unknowns, forgiving=forgiving), pins=tuple(map(_pin, gpio or [])),
            ram=ram and ram.value,
        ),
        pictures, instruments, timed.live(timed_board(board), guest_time=True), captured.wish(),
        frames=captured.count(), seconds=seconds, serial=serial, realtime=realtime, strict=gpu.strict,
    )  # fmt: skip
    raise typer.Exit(run_session(settings))


def timed_board(name: str) -> str:
    """A board as the files of chips call it; "" if there is no such board, which is said later."""
    from vc4lab.soc.board import UnknownBoard, find_board

    try:
        found = find_board(name).name
    except UnknownBoard:
        return ""
    return {"zero": "pi0", "pi2-1.2": "pi2"}.get(found, found)
