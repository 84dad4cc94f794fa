"""--setup as a whole: each step checks what is already done, so it can be repeated any time."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from vc4lab.cache.trust import Untrusted
from vc4lab.drm.setup.packages import LIBRARIES, PROGRAMS, QEMU_PACKAGES, PackageClient, Wanted, check_names
from vc4lab.drm.setup.places import ARM64, DRIVER, MULTIARCH, QEMU, Brought, SetupFailed
from vc4lab.drm.setup.preload import NAME, preload_object
from vc4lab.drm.setup.programs import needs_no_loader
from vc4lab.drm.setup.tools import NEEDED, run_tool
from vc4lab.drm.setup.unpack import extract_one, unpack

_TIMES_UNPACKED = 5
"""An unpacked package is about so many times as large as its file, if nothing else is known."""
QEMU_AT_LEAST = 7
_BROKEN = "nmet dependencies", "broken packages"
"""apt-get's words for unpacked packages that lack others."""
_NOT_THERE = "Unable to locate package", "no installation candidate"
_PIGLIT_PARTS = ("framework", "generated_tests", "templates", "tests")
_VERSION = re.compile(r"version (\d+)\.")


class Display(Protocol):
    """Shows the user what happens."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def show(self, text: str) -> None:
        """Show what is being done at the moment."""


def set_up(brought: Brought, extra: Sequence[str], display: Display) -> None:
    """Bring what is missing. Raises SetupFailed."""
    check_possible()
    check_names(extra)
    try:
        brought.check_all()
    except Untrusted as error:
        raise SetupFailed(str(error)) from None
    fault = brought.fault()
    if not fault and brought.is_complete and set(extra) <= brought.names():
        display.say(f"already complete: {brought.folder} (remove it to start afresh)")
        return
    with brought.locked(), _sentences(brought):
        started = time.monotonic()
        if fault:
            _make_again(brought, fault, display)
        if brought.architecture != ARM64:
            _set_up_foreign(brought, extra, display)
            return
        if brought.is_begun and not brought.is_complete:
            display.say(f"resuming in {brought.folder}")
        host_qemu = None if brought.qemu.exists() else find_host_qemu()
        needs_qemu = not brought.qemu.exists() and host_qemu is None
        client = PackageClient(brought, [ARM64])
        client.prepare()
        display.say(f"package lists of Debian {brought.suite}")
        client.update(lambda text: display.show(f"package lists: {text}"))
        wanted = _resolve(client, [*LIBRARIES, *PROGRAMS, *extra], display)
        size = _bring(client, wanted, {*PROGRAMS, *extra}, display) if wanted.files else 0
        if host_qemu is not None:
            brought.qemu.symlink_to(host_qemu)
            display.say(f"{QEMU}: the host's {host_qemu}")
        elif needs_qemu:
            size += _bring_qemu(brought, display)
        _finish(brought)
        seconds = time.monotonic() - started
        display.say(f"{_text(size)} downloaded, {seconds:.0f} s; complete: {brought.folder}")


def _set_up_foreign(brought: Brought, extra: Sequence[str], display: Display) -> None:
    """Packages of another architecture, which nothing of the host runs."""
    client = PackageClient(brought, [brought.architecture])
    client.prepare()
    display.say(f"package lists of Debian {brought.suite} for {brought.architecture}")
    client.update(lambda text: display.show(f"package lists: {text}"))
    wanted = _resolve(client, [*LIBRARIES, *extra], display)
    size = _bring(client, wanted, set(), display) if wanted.files else 0
    for file in client.archives.glob("*.deb"):
        file.unlink()  # of an interrupted run, not needed any more
    brought.complete()
    display.say(f"{_text(size)} downloaded; complete: {brought.folder}")


def _resolve(client: PackageClient, names: Sequence[str], display: Display) -> Wanted:
    """List what is missing; where what is there does not fit together, all is. Raises SetupFailed."""
    try:
        return client.resolve(names)
    except SetupFailed as error:
        if any(word in str(error) for word in _NOT_THERE):
            raise SetupFailed(f"{error} for {client.brought.architecture}") from None
        if not client.brought.unpacked() or not any(word in str(error) for word in _BROKEN):
            raise
        _make_again(client.brought, "its packages do not fit together", display)
        return client.resolve(names)


def _make_again(brought: Brought, why: str, display: Display) -> None:
    display.say(f"{brought.tree}: {why}; it is made again, with the packages that are named now")
    brought.discard()


def check_possible() -> None:
    """Raises SetupFailed where --setup cannot do anything."""
    machine = os.uname().machine
    if machine == "aarch64":
        raise SetupFailed(
            "on arm64 the distribution's own Mesa has the vc4 driver: install it and the programs as packages"
        )
    if machine != "x86_64":
        raise SetupFailed(f"there are no packages for {machine}; use --driver DIR")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise SetupFailed(
            f"{' and '.join(missing)} not found: --setup needs the package tools of Debian or its "
            "relatives. Here --driver DIR takes a Mesa that was built with vc4"
        )


def find_host_qemu() -> str | None:
    """A qemu-user of the host's that is new enough and has no dynamic loader: that one would take
    the arm64 programs' /etc/ld.so.preload, which the supervisor shows, for its own.
    """
    for name in (QEMU, f"{QEMU}-static"):
        place = shutil.which(name)
        if place is None or not needs_no_loader(Path(place)):
            continue
        with contextlib.suppress(SetupFailed):
            version = _VERSION.search(run_tool([place, "--version"]))
            if version is not None and int(version[1]) >= QEMU_AT_LEAST:
                return place
    return None


def _bring(client: PackageClient, wanted: Wanted, named: set[str], display: Display) -> int:
    """Download and unpack; the bytes that were downloaded."""
    brought = client.brought
    there = announce(client, wanted, f"{len(wanted.files)} packages", display)
    unpacked = wanted.unpacked or wanted.download * _TIMES_UNPACKED
    _check_room(brought.folder, wanted.download - there + unpacked)
    files = client.download(wanted, _stage(display, "download"))
    brought.incomplete()
    display.say(f"unpacking into {brought.tree}")
    for count, file in enumerate(files):
        display.show(f"unpacking: {count} of {len(files)}")
        unpack(file, brought, named=file.name.partition("_")[0] in named)
        file.unlink()
    return wanted.download - there


def announce(client: PackageClient, wanted: Wanted, what: str, display: Display) -> int:
    """Say what is going to be downloaded; the bytes that are here and whole. Raises OSError."""
    for name in client.discard_damaged(wanted):
        display.say(f"{name} was damaged: it is downloaded again")
    there = client.present(wanted)
    text = f"{what}, {_text(wanted.download)}"
    display.say(text + (f", of which {_text(there)} are already here" if there else ""))
    return there


def _bring_qemu(brought: Brought, display: Display) -> int:
    """The only package for this machine: apt knows its architecture for nothing else."""
    client = PackageClient(brought, [ARM64, "amd64"])
    client.prepare()
    client.update(lambda text: display.show(f"package lists: {text}"))
    package = f"{QEMU_PACKAGES[brought.suite]}:amd64"
    wanted = client.resolve([package])
    there = announce(client, wanted, package, display)
    _check_room(client.brought.folder, wanted.download - there + (32 << 20))
    files = client.download(wanted, _stage(display, "download of qemu"))
    names = [f"usr/bin/{QEMU}-static", f"usr/bin/{QEMU}"]
    wanted_file = next(file for file in files if file.name.startswith(package.partition(":")[0]))
    extract_one(wanted_file, names, client.brought.qemu)
    for file in files:
        file.unlink()
    return wanted.download - there


def _finish(brought: Brought) -> None:
    tree = brought.tree
    if not (tree / DRIVER).is_file():
        raise SetupFailed(f"the packages have no {DRIVER}")
    (tree / MULTIARCH / NAME).write_bytes(preload_object())
    (tree / "etc").mkdir(exist_ok=True)
    (tree / "etc/ld.so.preload").write_text(f"/{MULTIARCH}/{NAME}\n")
    run_tool([str(brought.qemu), "--version"])
    _add_piglit(brought)
    for file in (brought.folder / "apt/archives").glob("*.deb"):
        file.unlink()  # of an interrupted run, not needed any more
    brought.complete()


def _add_piglit(brought: Brought) -> None:
    """Let `piglit` be called by its name, if its package is installed. Raises OSError.

    The host's Python runs the list, qemu the tests. The framework starts tests by their path below
    a folder `bin`; here that is the folder of names.
    """
    installed = brought.tree / MULTIARCH / "piglit"
    script = brought.tree / "usr/bin/piglit"
    if not script.is_file():
        return
    folder = brought.folder / "piglit"
    folder.mkdir(exist_ok=True)
    targets = {name: installed / name for name in _PIGLIT_PARTS} | {"bin": brought.names_folder}
    for name, target in targets.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    place = shlex.quote(str(folder))
    modules = shlex.quote(str(brought.tree / "usr/lib/python3/dist-packages"))  # mako, six
    command = brought.names_folder / "piglit"
    command.unlink(missing_ok=True)
    command.write_text(
        f"#!/bin/sh\nPYTHONPATH={modules} PIGLIT_SOURCE_DIR={place} PIGLIT_BUILD_DIR={place} "
        f'exec python3 {shlex.quote(str(script))} "$@"\n'
    )
    command.chmod(0o755)


def _stage(display: Display, name: str) -> Callable[[str], None]:
    return lambda text: display.show(f"{name}: {text}")


def _check_room(folder: Path, needed: int) -> None:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < needed:
        raise SetupFailed(
            f"{folder}: no room: {_text(needed)} are needed, {_text(free)} are free", output=True
        )


def _text(size: int) -> str:
    return f"{max(0, size) / 1e6:.0f} MB"


@contextlib.contextmanager
def _sentences(brought: Brought) -> Iterator[None]:
    """Errors of the file system, as sentences."""
    try:
        yield
    except OSError as error:
        place = error.filename or brought.folder
        text = "no room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or ""
        raise SetupFailed(f"{place}: {text.lower()}", output=True) from None
