"""arm64 programs on a PC: found in the tree, and run under qemu-user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vc4lab.drm.nodes.foreign import ForeignTree
from vc4lab.drm.setup.host_driver import asks_for_software, find_driver
from vc4lab.drm.setup.places import Brought, find_brought
from vc4lab.drm.setup.preload import AARCH64
from vc4lab.drm.supervisor.path_calls import PathCalls

_HEADER = 64
_INTERPRETER = b"\3\0\0\0"
"""PT_INTERP, the type of the program header that names the dynamic loader (elf(5))."""


def start(
    brought: Brought, program: Sequence[str], environment: dict[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Command and environment to start a program with in front of what --setup brought.

    A name without a slash means a program of the brought packages, else the host's. A path to an
    arm64 program is one for qemu. What shells start later is found by the same names in PATH.
    """
    environment = dict(environment)
    path = environment.get("PATH", os.defpath)
    environment.setdefault("GST_REGISTRY_FORK", "no")  # kmscube: its child would be an arm64 one
    environment["PATH"] = f"{brought.names_folder}:{path}"
    found = find_program(brought, program[0])
    if found is None:
        return list(program), environment
    return [*brought.emulator, str(found), *program[1:]], environment


@contextlib.contextmanager
def in_front_of(
    brought: Brought | None, paths: PathCalls, program: Sequence[str], environment: dict[str, str] | None
) -> Iterator[tuple[Sequence[str], dict[str, str] | None]]:
    """Show the arm64 files to programs that start meanwhile; how to start the first of them.

    Without anything brought it is started as it is.
    """
    if brought is None:
        yield program, environment
        return
    started = start(brought, program, dict(os.environ) if environment is None else environment)
    before, paths.foreign = paths.foreign, ForeignTree(brought.tree)
    try:
        yield started
    finally:
        paths.foreign = before


def choose(arm64: bool | str, environment: Mapping[str, str] | None) -> Brought | None:
    """Choose what to run programs with: nothing if that is declined, if the host has a driver, or if the
    environment asks for one that draws on the processor: that is the host's.

    The name of a suite asks for that one, whatever the host has. Raises Untrusted where others
    may have written what is there.
    """
    if arm64 is False:
        return None
    if arm64 is True:
        environment = os.environ if environment is None else environment
        if find_driver(environment) is not None or asks_for_software(environment):
            return None
    found = find_brought(None if arm64 is True else arm64)
    if found is not None:
        found.check_all()
    return found


def find_program(brought: Brought, name: str) -> Path | None:
    """The arm64 program of that name or path; None if it is none."""
    found = Path(name) if "/" in name else brought.program(name)
    if found is None:
        return None
    return found if is_arm64(found) else None


def is_arm64(path: Path) -> bool:
    """Whether a file is an arm64 program."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return False
    if len(head) < 20 or head[:6] != b"\x7fELF\2\1":
        return False
    return int.from_bytes(head[18:20], "little") == AARCH64


def needs_no_loader(path: Path) -> bool:
    """Whether a file is a 64-bit program that starts without the host's dynamic loader."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER)
            if len(head) < _HEADER or head[:6] != b"\x7fELF\2\1":
                return False
            file.seek(int.from_bytes(head[32:40], "little"))
            size, count = (int.from_bytes(head[at : at + 2], "little") for at in (54, 56))
            entries = [file.read(size)[:4] for _ in range(count)]
    except (OSError, OverflowError, ValueError):  # an offset that no file has
        return False
    return bool(entries) and _INTERPRETER not in entries
