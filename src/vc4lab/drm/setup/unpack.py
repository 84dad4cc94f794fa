"""Unpacks Debian packages into the tree, one after another; completed ones are skipped.

Each package is first unpacked beside the tree and then moved into it, so that an interrupted run
leaves no half package that counts as whole. /lib, /bin and /sbin go below usr, links to absolute
places become relative, and documentation stays out.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path

from vc4lab.drm.nodes.foreign import ForeignTree
from vc4lab.drm.setup.places import MULTIARCH, Brought, SetupFailed
from vc4lab.drm.setup.programs import is_arm64
from vc4lab.drm.setup.tools import run_tool, tool_failed

_LEFT_OUT = ("/usr/share/doc", "/usr/share/man", "/usr/share/lintian", "/usr/share/bug")
PROGRAM_PLACES = (
    "/usr/bin", "/usr/games", "/bin", "/usr/libexec/installed-tests/SDL2",
    f"/{MULTIARCH}/installed-tests/SDL2", f"/{MULTIARCH}/piglit/bin",
)  # fmt: skip


def unpack(package: Path, brought: Brought, *, named: bool) -> None:
    """Put a package into the tree and note it. `named`: its programs can be called by name.

    Raises SetupFailed.
    """
    staging = brought.folder / "unpacking"
    _clear(staging)
    fields = run_tool(["dpkg-deb", "-f", str(package)])
    if not brought.is_fitting(fields):
        raise SetupFailed(f"{package.name} is not for {brought.architecture}")
    run_tool(["dpkg-deb", "-x", str(package), str(staging)])
    programs = _programs_in(staging) if named else []
    _move(staging, brought.tree)
    _clear(staging)
    for program in programs:
        brought.add_program(program)
    brought.note(package.name, fields)


def extract_one(package: Path, names: Sequence[str], target: Path) -> None:
    """Extract only one file, the first of `names` that the package has. Raises SetupFailed."""
    import subprocess

    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(target.name + ".new")
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        found = False
        try:
            with tarfile.open(fileobj=tool.stdout, mode="r|") as archive:
                for member in archive:
                    if member.isreg() and member.name.lstrip("./") in names:
                        content = archive.extractfile(member)
                        assert content is not None
                        with open(beside, "wb") as file:
                            shutil.copyfileobj(content, file)
                        found = True
                        break
        except tarfile.TarError:
            pass
        tool.stdout.close()
        error = tool.stderr.read() if tool.stderr is not None else b""
    if not found:
        if tool.returncode > 0:
            raise tool_failed("dpkg-deb", error.decode(errors="replace"))
        raise SetupFailed(f"{package.name}: {names[0]} is not in it")
    beside.chmod(0o755)
    beside.replace(target)


def _programs_in(staging: Path) -> list[str]:
    found = []
    for place in PROGRAM_PLACES:
        folder = staging / place[1:]
        with contextlib.suppress(OSError):
            for file in folder.iterdir():
                if is_arm64(file):
                    found.append(ForeignTree.plain(f"{place}/{file.name}"))
    return sorted(found)


def _move(staging: Path, tree: Path) -> None:
    for folder, directories, files in os.walk(staging):
        inside = folder[len(str(staging)) :]
        place = ForeignTree.plain(inside) if inside else ""
        if place.startswith(_LEFT_OUT):
            directories.clear()
            continue
        target = Path(f"{tree}{place}")
        target.mkdir(parents=True, exist_ok=True)
        for name in [*directories]:
            if os.path.islink(f"{folder}/{name}"):
                directories.remove(name)
                files.append(name)
        for name in files:
            _move_file(f"{folder}/{name}", f"{place}/{name}", tree)


def _move_file(source: str, path: str, tree: Path) -> None:
    target = f"{tree}{path}"
    status = os.lstat(source)
    if os.path.isdir(target) and not os.path.islink(target):
        return  # a link where another package has a folder
    if stat.S_ISLNK(status.st_mode):
        leads_to = os.readlink(source)
        if leads_to.startswith("/"):
            leads_to = os.path.relpath(ForeignTree.plain(leads_to), os.path.dirname(path))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        os.symlink(leads_to, target)
    elif stat.S_ISREG(status.st_mode):
        os.chmod(source, 0o755 if status.st_mode & 0o111 else 0o644)  # no setuid programs
        os.replace(source, target)


def _clear(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
