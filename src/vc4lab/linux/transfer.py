"""Files into a booted Linux and out of it: as a tar archive on an SD card.

The guest's own drivers read and write the card, so a file takes as long as on a board (some ten
megabytes a second of guest time), whatever its size, and folders, modes and links come along. The
card controllers' modules are loaded for the transfer only: they look for a card every second.

Source: busybox, tar applet; pax(1) for the archive's form.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO

from vc4lab.files import PREFIX, Unusable

HOME = PurePosixPath("/root")
"""The folder in which commands are run, and relative paths begin."""
DEVICE = "/dev/mmcblk0"
SECTOR = 512
LARGEST = 4 << 30
"""Bytes of an archive that comes out; the guest's memory is the smaller bound."""
LOAD = f"""
[ -b {DEVICE} ] && {{ echo "there is a card in the slot" >&2; exit 9; }}
load() {{
  while read -r module; do
    case $module in */mmc/core/*|*/mmc/$1) insmod "$module" 2>/dev/null ;; esac
  done < /vc4lab/card-modules
  tries=0
  until [ -b {DEVICE} ]; do
    [ $tries -lt 40 ] || return 1
    tries=$((tries + 1)); usleep 50000
  done
}}
load "host/bcm2835*" || load "*" || {{ echo "the card does not come up" >&2; exit 9; }}
"""
"""The slot belongs to the first of the controllers; where it does not, to one of the others."""
UNLOAD = """
code=$?
rmmod bcm2835 2>/dev/null; rmmod sdhci_iproc 2>/dev/null
exit $code
"""


def put_command(folder: PurePosixPath) -> str:
    """Return the command that unpacks the card in a folder of the guest's."""
    place = shlex.quote(str(folder))
    return f"{LOAD}mkdir -p {place} && tar -x -p -f {DEVICE} -C {place}{UNLOAD}"


def get_command(path: PurePosixPath) -> str:
    """Return the command that packs a file or folder of the guest's onto the card."""
    folder, name = shlex.quote(str(path.parent)), shlex.quote(path.name)
    there = shlex.quote(str(path))
    return (
        f'[ -e {there} ] || {{ echo "there is no {path}" >&2; exit 8; }}\n'
        f"{LOAD}(tar -c -f - -C {folder} -- {name} && echo done > /run/.vc4lab-packed) "
        f"| dd of={DEVICE} bs=64k conv=fsync 2>/run/.vc4lab-dd "
        "|| { cat /run/.vc4lab-dd >&2; false; } && rm /run/.vc4lab-packed"
        f"{UNLOAD}"
    )


def guest_path(path: str | PurePosixPath | None, name: str) -> PurePosixPath:
    """Return the path in the guest for a file of that name; "folder/" is the folder for it.

    Raises ValueError.
    """
    text = "" if path is None else str(path)
    if "\0" in text or "\n" in text:
        raise ValueError(f"{text[:60]!r}: a path in the guest has neither zero bytes nor new lines")
    found = HOME / text
    if path is None or text.endswith("/"):
        found /= name
    parts = [part for part in found.parts if part != "/"]
    if not parts or ".." in parts:
        raise ValueError(f"{text!r}: the path in the guest names no file")
    return found


def pack(source: Path, name: str, file: IO[bytes]) -> None:
    """Write the archive: the source under another name, root's. Raises OSError."""

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            return None  # devices, pipes and sockets
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    status = os.stat(source)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise Unusable("is neither a file nor a folder", source)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(os.path.realpath(source), name, filter=owned)
    file.flush()


def unpack(file: IO[bytes], name: str, target: Path) -> None:
    """Write what the guest packed: it is not trusted. Raises OSError, ValueError.

    Files, folders and links that stay inside; the target takes its place when it is complete.
    """
    beside = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            _extract(archive, beside)
        made = beside / name
        if not os.path.lexists(made):
            raise ValueError("the guest has packed something else")
        if target.is_dir() and not target.is_symlink():
            raise Unusable("is a folder", target)
        os.replace(made, target)
    except tarfile.TarError as error:
        raise ValueError(f"the guest's archive is damaged ({error})") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """The members below a fresh folder. Links come last, so that nothing is written through one."""
    links: list[tuple[Path, str]] = []
    modes: list[tuple[Path, int]] = []
    for member in archive:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"the guest's archive has {member.name[:60]!r} in it")
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            place.mkdir(exist_ok=True)
            modes.append((place, member.mode))
        elif member.isreg():
            content = archive.extractfile(member)
            assert content is not None
            with open(place, "xb") as out:
                shutil.copyfileobj(content, out, 1 << 20)
            modes.append((place, member.mode))
        elif member.islnk():
            first = PurePosixPath(member.linkname)
            if first.is_absolute() or ".." in first.parts or not (folder / first).is_file():
                raise ValueError(f"the guest's archive links {member.name[:60]!r} to what it lacks")
            shutil.copyfile(folder / first, place)
        elif member.issym():
            links.append((place, member.linkname))
    for place, mode in reversed(modes):
        place.chmod(mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR)  # so that it can be removed again
    for place, leads_to in links:
        with contextlib.suppress(FileExistsError):
            os.symlink(leads_to, place)
