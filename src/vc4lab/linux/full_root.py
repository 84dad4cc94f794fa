"""A small real Debian with systemd, as the image of a card: `vc4lab linux --setup --root full`.

The host's package client brings the packages (signatures checked), `mke2fs` makes the image and
`debugfs` gives the files their owners, all without root's rights. An interrupted run keeps what was
downloaded; the image gets its name when it is whole.

Sources: mke2fs(8), debugfs(8); Debian Policy 2.5 for what is essential and required.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from vc4lab.drm.setup.packages import PackageClient
from vc4lab.drm.setup.places import Brought, SetupFailed
from vc4lab.drm.setup.steps import Display, announce
from vc4lab.drm.setup.tools import environment, run_tool
from vc4lab.linux.full_tree import NEW_FILE, NEW_FOLDER, FullTree, Owner

PACKAGES = (
    "?essential", "?priority(required)", "systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod",
    "iproute2", "procps",
)  # fmt: skip
APPEND = "root=/dev/mmcblk0 rw"
IMAGE_SIZE = 600 << 20
ROOM = 3 * IMAGE_SIZE
"""Bytes on the disk while it is made: packages, folder, image."""
_BESIDE_PATH = ("/usr/sbin", "/sbin")


def full_image(brought: Brought) -> Path:
    """Return the path of the image of a suite and architecture, which need not exist."""
    return brought.folder / "full" / "debian.img"


def set_up_full(brought: Brought, display: Display) -> None:
    """Make the image, unless it is there. Raises SetupFailed."""
    image = full_image(brought)
    own = Brought(brought.suite, image.parent, brought.architecture)
    if image.is_file():
        with contextlib.suppress(SetupFailed, OSError), own.locked():
            _clear(own)  # of a run that ended just before
        display.say(f"already complete: {image} (remove it to start afresh)")
        return
    make, change = _tool("mke2fs"), _tool("debugfs")
    with own.locked():
        try:
            packages = _download(own, display)
            tree = _tree(own, packages, display)
            display.say(f"{IMAGE_SIZE >> 20} MiB of ext4: {image}")
            _write_image(tree, image, make, change)
            _clear(own)
        except OSError as error:
            text = (error.strerror or "").lower()
            raise SetupFailed(f"{error.filename or own.folder}: {text}", output=True) from None
    display.say("complete: vc4lab linux --root full")


def _clear(own: Brought) -> None:
    """Remove what the image was made of. Raises OSError."""
    if own.tree.is_dir():
        shutil.rmtree(own.tree)
    for package in (own.folder / "apt/archives").glob("*.deb"):
        package.unlink()


def _download(own: Brought, display: Display) -> list[Path]:
    client = PackageClient(own, [own.architecture])
    client.prepare()
    display.say(f"package lists of Debian {own.suite} for {own.architecture}")
    client.update(lambda text: display.show(f"package lists: {text}"))
    wanted = client.resolve(PACKAGES)
    announce(client, wanted, f"{len(wanted.files)} packages", display)
    place = os.statvfs(own.folder)
    if place.f_bavail * place.f_frsize < ROOM:
        raise SetupFailed(f"{own.folder}: no room: {ROOM / 1e6:.0f} MB are needed", output=True)
    return client.download(wanted, lambda text: display.show(f"download: {text}"))


def _tree(own: Brought, packages: list[Path], display: Display) -> FullTree:
    shutil.rmtree(own.tree, ignore_errors=True)
    tree = FullTree(own.tree, own.architecture)
    for count, package in enumerate(packages):
        display.show(f"unpacking: {count} of {len(packages)}")
        tree.unpack(package)
    tree.configure()
    return tree


def _write_image(tree: FullTree, image: Path, make: str, change: str) -> None:
    beside = image.with_name("debian.new")
    beside.unlink(missing_ok=True)
    kibibytes = f"{IMAGE_SIZE >> 10}k"
    run_tool([make, "-q", "-t", "ext4", "-L", "debian", "-E", "root_owner=0:0",
              "-d", str(tree.folder), str(beside), kibibytes])  # fmt: skip
    script = image.with_name("owners")
    script.write_text("\n".join(owner_commands(tree)) + "\n")
    _change([change, "-w", "-f", str(script), str(beside)])
    script.unlink()
    beside.replace(image)


def _change(command: list[str]) -> None:
    """Run debugfs, whose exit code says nothing of its commands. Raises SetupFailed."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        env=environment(), check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if not line.startswith("debugfs 1.")]
    if done.returncode or said:
        raise SetupFailed(f"debugfs: {said[0] if said else 'failed without a message'}")


def owner_commands(tree: FullTree) -> Iterator[str]:
    """Yield commands for debugfs that give each file the owner and mode of its package."""
    root = str(tree.folder)
    for folder, directories, files in os.walk(root):
        for name in [*directories, *files]:
            place = f"{folder}/{name}"
            path = place[len(root) + 1 :]
            status = os.lstat(place)
            is_folder = stat.S_ISDIR(status.st_mode)
            owner = tree.owners.get(path, NEW_FOLDER if is_folder else NEW_FILE)
            mode = stat.S_IFMT(status.st_mode) | owner.mode
            if stat.S_ISLNK(status.st_mode):
                owner, mode = Owner(0, 0, 0o777), status.st_mode
            if status.st_mode != mode:
                yield f'set_inode_field "/{path}" mode 0{mode:o}'
            if status.st_uid != owner.user:
                yield f'set_inode_field "/{path}" uid {owner.user}'
            if status.st_gid != owner.group:
                yield f'set_inode_field "/{path}" gid {owner.group}'


def _tool(name: str) -> str:
    """A program of e2fsprogs, which need not be in the user's PATH. Raises SetupFailed."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_BESIDE_PATH])
    found = shutil.which(name, path=path)
    if found is None:
        raise SetupFailed(f"{name} not found: apt-get install e2fsprogs")
    return found
