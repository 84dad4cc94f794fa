"""`vc4lab linux`: Debian's Linux on the simulated Pi, with Mesa's vc4 and test programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vc4lab.cli.capturing import CaptureOptions
from vc4lab.cli.drm_setup import Display, set_up, set_up_card
from vc4lab.cli.exit_codes import ExitCode, failed, interrupted_code
from vc4lab.cli.gpu_options import GpuGroup
from vc4lab.cli.groups import Without
from vc4lab.cli.options import FILE, limits
from vc4lab.cli.outputs import Outputs, PictureOptions, say
from vc4lab.cli.settings import InstrumentOptions, Settings
from vc4lab.drm.setup.places import SUITES
from vc4lab.ranges import CORES

if TYPE_CHECKING:
    from vc4lab.drm.setup.places import Brought
    from vc4lab.linux.boots import LinuxBoot


def linux(  # noqa: C901
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM [ARGUMENTS]", help="The program to run. Default: a shell."),
    ] = None,
    *,
    gpu: GpuGroup,
    pictures: Annotated[PictureOptions, Without("both_orders")],
    instruments: Annotated[
        InstrumentOptions, Without("symbols", "save_state", "load_state", "audio", "lists")
    ],
    captured: CaptureOptions,
    board: Annotated[str, typer.Option(help="The board.")] = "pi3",
    arch: Annotated[
        str | None,
        typer.Option(
            help="Debian's architecture: arm64, armhf or armel. Default: the board's.", metavar="NAME"
        ),
    ] = None,
    cores: Annotated[int, typer.Option(help="Cores that Linux uses.", **limits(CORES))] = 1,
    append: Annotated[str, typer.Option(help="More for the kernel's command line.", metavar="TEXT")] = "",
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            "--mode",
            help="The monitor's modes, the native one first: 1280x720@50,800x600. Default: 1920x1080.",
            metavar="WxH[@HZ],…",
        ),
    ] = None,
    initrd: Annotated[
        Path | None,
        typer.Option(
            help="Boot this RAM disk instead, from power-on, with the serial line here.",
            metavar="FILE",
            parser=FILE,
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option(
            help="Boot with this card as root, a folder or image, with the serial line here.",
            metavar="DIR_OR_IMAGE",
            parser=FILE,
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option(
            help="full: boot Debian with systemd from a card, with the serial line here; with "
            "--setup, make that card.",
            metavar="full",
        ),
    ] = None,
    put: Annotated[
        list[str] | None,
        typer.Option(
            help="Copy a file or folder of the host into the guest first; without PATH to /root, "
            "where programs are run. Repeat it for more.",
            metavar="FILE[:PATH]",
        ),
    ] = None,
    realtime: Annotated[
        bool | None, typer.Option(help="Run no faster than the real board. Default: shells and terminals do.")
    ] = None,
    setup: Annotated[
        bool,
        typer.Option(
            "--setup",
            help="Download the kernel for the board, Mesa's vc4 and test programs; further "
            "packages may follow after --.",
        ),
    ] = False,
    suite: Annotated[str | None, typer.Option(help="The Debian suite: bookworm or trixie.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Report what is installed and what is missing.")
    ] = False,
) -> None:
    """Boot Debian's Linux on a simulated Pi; its own vc4 driver draws on the simulated GPU.

    The first time it boots; after that a saved state of the booted system is loaded.
    """
    from vc4lab.linux.init import NO_SHELL
    from vc4lab.linux.kernels import UnknownTarget, architecture_of, packages_of

    program = program or []
    try:
        arch = architecture_of(find_name(board), arch)
    except UnknownTarget as error:
        raise failed(f"vc4lab linux: {error}; `vc4lab boot` takes other kernels") from None
    board = find_name(board)
    if suite is not None and suite not in SUITES:
        raise failed(f"--suite {suite}: {' or '.join(SUITES)}")
    if root not in (None, "full"):
        raise failed(f"--root {root}: full, or without the option the small root of --setup")
    if setup:
        code = set_up(suite, [*packages_of(arch), *program], "linux", arch)
        if code == ExitCode.OK and root is not None:
            code = set_up_card(suite, arch)
        raise typer.Exit(code)
    if check:
        raise typer.Exit(_check(suite, board, arch))
    _check_command(program)
    puts = _puts(put or ())
    count, wish = captured.count(), captured.wish()
    problem = Outputs(pictures).problem([instruments.trace_to, captured.capture])
    if problem is not None:
        raise failed(f"vc4lab: {problem[0]}", problem[1])
    if root is not None:
        if initrd is not None or card is not None:
            raise failed("--root full: it is a card itself; without --card and --initrd")
        card, append = _full_root(suite, board, arch, append)
    alone = initrd is not None or card is not None
    monitor = _monitor(modes, alone)
    if alone and program:
        name = "root full" if root else "initrd" if card is None else "card"
        raise failed(f"--{name}: a program runs in the root of --setup only")
    if alone and puts:
        raise failed("--put: only into the root of --setup; a card has files of its own")
    if instruments.write_image and card is None:
        raise failed("--write-image: there is no --card")
    if card is not None:
        append = _with_root(card, append)
        if not sys.stdin.isatty():
            append = f"{append} {NO_SHELL}"
    from vc4lab.cli.session import run_session

    boot = _boot(_brought(suite, board, arch), board, cores, append, program)
    try:
        options = boot.options
    except ValueError as error:
        raise failed(f"--append: {error}") from None
    if not alone:
        _prepare(boot)
    elif initrd is None:
        _prepare(boot, root_only=True)
    if alone:
        options = replace(options, card=card, extras=replace(boot.extras, ramdisk=initrd or boot.root))
    settings = Settings(
        boot.kernel.image,
        replace(options, gpu=gpu.options()),
        pictures,
        replace(instruments, load_state=None if alone else boot.state, state_in_place=True),
        capture=wish, frames=count, serial="stdio", all_keys=alone, strict=gpu.strict,
        realtime=_is_typed_at(program, alone) if realtime is None else realtime,
        says_late=realtime is True, front="linux",
    )  # fmt: skip
    if alone:
        if sys.stdin.isatty():
            say("the serial line of the simulated Pi; Ctrl-A X leaves")
        raise typer.Exit(run_session(settings))
    from vc4lab.cli.linux_terminal import LinuxTerminal

    if not program and sys.stdin.isatty():
        say("a shell in the simulated Pi; `exit` or Ctrl-A X leaves")
    guest = LinuxTerminal(program, monitor, puts)
    code = run_session(settings, guest)
    if code == ExitCode.BAD_INPUT and not boot.state.exists():  # it was damaged
        _prepare(boot)
        guest = LinuxTerminal(program, monitor, puts)
        code = run_session(settings, guest)
    raise typer.Exit(code or guest.code or ExitCode.OK)


def _is_typed_at(program: Sequence[str], alone: bool) -> bool:
    """Whether keys are typed by hand: a login is not to time out after a second."""
    return sys.stdin.isatty() if alone else not program


def find_name(board: str) -> str:
    """The board's own name, for one of its synonyms; other words as they are."""
    from vc4lab.soc.board import UnknownBoard, find_board

    try:
        return find_board(board).name
    except UnknownBoard:
        return board


def _check_command(program: Sequence[str]) -> None:
    """Whether it can be typed on the guest's serial line. Raises typer.Exit."""
    from vc4lab.cli.linux_terminal import command_of

    try:
        command_of(program)
    except ValueError as error:
        raise failed(f"vc4lab linux: {error}") from None


def _puts(texts: Sequence[str]) -> list[tuple[Path, str | None]]:
    """Split each text of `--put` into the host's file and the guest's path. Raises typer.Exit."""
    from vc4lab.files import why
    from vc4lab.linux.transfer import guest_path

    found = []
    for text in texts:
        ends = [len(text), *(at for at, letter in enumerate(text) if letter == ":")]
        there = (at for at in ends if os.path.lexists(text[:at]))
        at = next(there, text.index(":") if ":" in text else len(text))
        name, path = text[:at], text[at + 1 :]
        try:
            os.stat(name)
            guest_path(path or None, Path(os.path.abspath(name)).name)
        except OSError as error:
            raise failed(f"vc4lab linux: --put {name}: {why(error)}") from None
        except ValueError as error:
            raise failed(f"vc4lab linux: --put {text}: {error}") from None
        found.append((Path(name), path or None))
    return found


def _monitor(modes: str | None, alone: bool) -> list[tuple[int, int, int]] | None:
    """The monitor's modes: width, height, rate of each. Raises typer.Exit."""
    from vc4lab.linux.running import modes_of

    if modes is None:
        return None
    if alone:
        raise failed("--modes: only for the root of --setup; a card has config.txt's hdmi_mode")
    try:
        return modes_of(modes)
    except ValueError as error:
        raise failed(f"--modes {modes}: {error}") from None


def _brought(suite: str | None, board: str, arch: str) -> Brought:
    from vc4lab.cache.trust import Untrusted
    from vc4lab.drm.setup.places import SetupFailed, brought, find_brought
    from vc4lab.linux.boots import setup_command

    try:
        found = find_brought(suite, arch)
    except Untrusted as error:
        raise failed(f"vc4lab linux: {error}") from None
    if found is None:
        command = setup_command(board, arch)
        with suppress(SetupFailed):  # there is no place for it
            if any(brought(name, arch).is_begun for name in ([suite] if suite else SUITES)):
                raise failed(f"vc4lab linux: what is installed is not complete: {command} resumes")
        raise failed(f"vc4lab linux: nothing is installed yet: {command}")
    return found


def _boot(brought: Brought, board: str, cores: int, append: str, program: Sequence[str]) -> LinuxBoot:
    from vc4lab.linux.boots import BootFailed, LinuxBoot, LinuxPlan

    own = tuple(program[:1]) if program and brought.program(program[0]) is not None else ()
    try:
        return LinuxBoot(brought, LinuxPlan(board, brought.architecture, cores, append, own))
    except BootFailed as error:
        raise failed(f"vc4lab linux: {error}") from None


def _with_root(card: Path, append: str) -> str:
    """The command line with the card's root in it. Raises typer.Exit."""
    from vc4lab.files import why
    from vc4lab.linux.card_root import NoRoot, root_of

    if any(word.startswith("root=") for word in append.split()):
        return append
    try:
        return f"root={root_of(card)} {append}".strip()
    except NoRoot as error:
        raise failed(f"--card: {error}") from None
    except OSError as error:
        raise failed(f"--card {card}: {why(error)}") from None


def _full_root(suite: str | None, board: str, arch: str, append: str) -> tuple[Path, str]:
    """The card that --setup --root full made, and the command line. Raises typer.Exit."""
    from vc4lab.cache.trust import Untrusted, check_way
    from vc4lab.linux.boots import setup_command
    from vc4lab.linux.full_root import APPEND, full_image

    image = full_image(_brought(suite, board, arch))
    try:
        check_way(image)
    except Untrusted as error:
        raise failed(f"vc4lab linux: {error}") from None
    if not image.is_file():
        raise failed(f"--root full: not made yet: {setup_command(board, arch)} --root full")
    named = any(word.startswith("root=") for word in append.split())
    return image, append if named else f"{APPEND} {append}".strip()


def _prepare(boot: LinuxBoot, *, root_only: bool = False) -> None:
    """Boot once, if there is no state yet; or only make the RAM disk. Raises typer.Exit."""
    from vc4lab.cache.trust import Untrusted
    from vc4lab.linux.boots import BootFailed, reason_of
    from vc4lab.linux.root import RootFailed
    from vc4lab.soc.boot.firmware import BootError

    if not root_only and not boot.has_state:
        say("booting Linux; the next time it is there at once")
    try:
        with Display() as display:
            if root_only:
                boot.make_root(display.show)
            else:
                boot.prepare(display.show)
    except Untrusted as error:
        raise failed(f"vc4lab linux: {error}") from None
    except OSError as error:
        raise failed(f"vc4lab linux: {reason_of(error)}", ExitCode.OUTPUT) from None
    except (BootFailed, RootFailed, BootError) as error:
        raise failed(f"vc4lab linux: {reason_of(error)}") from None
    except KeyboardInterrupt:
        raise failed("interrupted before Linux was up", interrupted_code()) from None


def _check(suite: str | None, board: str, arch: str) -> int:
    """Print what there is; the exit code is 0 if Linux can be booted."""
    from vc4lab.cache.trust import Untrusted
    from vc4lab.cli.drm_setup import describe
    from vc4lab.drm.setup.places import ARM64, find_brought
    from vc4lab.linux.boots import BootFailed, LinuxBoot, LinuxPlan, setup_command

    try:
        found = find_brought(suite, arch)
        for line in describe(suite, "linux") if arch == ARM64 else ():
            typer.echo(line)
    except Untrusted as error:
        typer.echo(f"{arch:<12} {error}")
        return ExitCode.BAD_INPUT
    if found is None:
        if arch != ARM64:
            typer.echo(f"{arch:<12} not installed: {setup_command(board, arch)}")
        return ExitCode.BAD_INPUT
    try:
        boot = LinuxBoot(found, LinuxPlan(board, arch))
    except BootFailed as error:
        typer.echo(f"kernel       {error}")
        return ExitCode.BAD_INPUT
    typer.echo(f"kernel       {boot.kernel.image}")
    states = sorted(boot.folder.glob("*.state"))
    text = f"{len(states)} in {boot.folder}" if states else "none yet: the first run boots"
    typer.echo(f"saved states {text}")
    return ExitCode.OK
