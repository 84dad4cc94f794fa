"""Makes a small root for a kernel out of unpacked Debian packages: an initramfs.

It has busybox, the programs that are asked for with all libraries that they name, Mesa's vc4
driver, and the kernel modules of the Pi's display and cards with those they depend on.
"""

from __future__ import annotations

import lzma
import os
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from vc4lab.drm.nodes.foreign import ForeignTree
from vc4lab.drm.setup.host_driver import DRIVER
from vc4lab.drm.setup.places import ARM64, Brought
from vc4lab.files import Unusable, read_file
from vc4lab.linux.archive import Archive
from vc4lab.linux.init import INIT, LISTENER
from vc4lab.linux.objects import BadObject, module_needs, needs_of

PROGRAMS = ("kmscube", "glmark2-es2-drm", "modetest", "vbltest", "drm_info")
"""Always there, if their packages are."""
GL_PROGRAMS = ("kmscube", "glmark2-es2-drm")
"""Those that need Mesa's driver, which Debian does not build for armel."""
MODULES = ("i2c-bcm2835", "snd-soc-hdmi-codec", "vc4", "bcm2835_thermal")
"""Those of the display, and the thermometer's. vc4.ko asks for the others by name; if they come
later it begins again, and 6.1's sound core then uses memory that it has freed."""
CARD_MODULES = ("bcm2835", "sdhci-iproc", "crc32c_generic", "ext4", "vfat", "nls_cp437", "nls_ascii")
"""Both card controllers, ext4 with its checksums, vfat with the tables of characters that Debian's
wants. Loaded only for a card: the controllers look for one every second."""
OPENED = ("libEGL_mesa.so.0", "libGLESv2.so.2", "libgbm.so.1", f"dri/{DRIVER}")
"""Libraries that programs open without naming them, below the folder of libraries."""
OPENED_LATER = ("gbm/dri_gbm.so",)
"""Libraries of Mesa from 24.3 on that programs open without naming them."""
FOLDERS = ("usr/share/glvnd", "usr/share/drirc.d", "usr/share/libdrm")
"""Files that Mesa reads."""
DATA = {"glmark2-es2-drm": ("usr/share/glmark2",)}
"""Files that a program reads."""
LARGEST = 1 << 28
MAX_DEPTH = 32


class RootFailed(Exception):  # noqa: N818 - said to the user as it is
    """The root cannot be made; the text says why."""


class Tree:
    """The unpacked packages, seen as a guest's root sees them."""

    def __init__(self, brought: Brought) -> None:
        self.top = brought.tree
        self._libraries: dict[str, str] = {}
        places = [brought.multiarch, "usr/lib"]
        for folder, _folders, names in os.walk(self.top / brought.multiarch):
            places.append(os.path.relpath(folder, self.top))
            del names
        for place in places:
            with os.scandir(self.top / place) as entries:
                for entry in entries:
                    if ".so" in entry.name:
                        self._libraries.setdefault(entry.name, f"{place}/{entry.name}")

    def library(self, name: str) -> str | None:
        """Return the path of a library by the name that programs know, or None."""
        return self._libraries.get(name)

    def resolve(self, path: str) -> list[str]:
        """A path and those that its links lead to, the file last. Raises RootFailed."""
        found = []
        for _link in range(MAX_DEPTH):
            path = ForeignTree.plain("/" + path.strip("/")).strip("/")
            found.append(path)
            place = self.top / path
            if not place.is_symlink():
                return found
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(place)))
        raise RootFailed(f"{self.top / path}: links in a circle")


class Root:
    """Collects files into an archive."""

    def __init__(self, brought: Brought, file: IO[bytes]) -> None:
        self.tree = Tree(brought)
        self.archive = Archive(file)
        self.missing: list[str] = []
        """Libraries that programs name and no package has."""

    def add(self, path: str) -> None:
        """A file of the tree with the links on the way to it, and the libraries it names."""
        waiting = deque([path])
        while waiting:
            chain = self.tree.resolve(waiting.popleft())
            for link in chain[:-1]:
                if link not in self.archive:
                    self.archive.link(link, os.readlink(self.tree.top / link))
            if chain[-1] in self.archive:
                continue
            place = self.tree.top / chain[-1]
            mode = 0o755 if place.stat().st_mode & 0o111 else 0o644
            self.archive.add(chain[-1], read_file(place, LARGEST), mode)
            needed = needs_of(place)
            if needed is None:
                continue
            if needed.interpreter:
                waiting.append(needed.interpreter)
            for name in needed.libraries:
                library = self.tree.library(name)
                if library is None:
                    self.missing.append(name)
                else:
                    waiting.append(library)

    def add_folder(self, path: str) -> None:
        """All files below a folder of the tree, if there is one."""
        for folder, folders, names in os.walk(self.tree.top / path):
            folders.sort()
            for name in sorted(names):
                self.add(os.path.relpath(os.path.join(folder, name), self.tree.top))


def make_root(
    brought: Brought, release: str, programs: Iterable[str], file: IO[bytes], files: Iterable[str] = ()
) -> Root:
    """Write a root for a kernel of that release, `files` of the tree in it besides what programs
    name. Raises RootFailed, OSError."""
    try:
        return _make(brought, release, programs, file, files)
    except BadObject as error:
        raise RootFailed(str(error)) from None
    except FileNotFoundError as error:
        raise RootFailed(f"{error.filename}: it is missing") from None


def driver_of(brought: Brought) -> Path:
    """Return the path at which Mesa's driver is looked for."""
    return brought.tree / brought.multiarch / OPENED[-1]


def has_driver(brought: Brought) -> bool:
    """Whether there is Mesa's driver for the architecture: Debian's, or the user's own."""
    return brought.architecture == ARM64 or driver_of(brought).is_file()


def _make(
    brought: Brought, release: str, programs: Iterable[str], file: IO[bytes], files: Iterable[str]
) -> Root:
    root = Root(brought, file)
    archive = root.archive
    for name in ("bin", "sbin", "lib"):
        archive.folder(f"usr/{name}")
        archive.link(name, f"usr/{name}")
    for name in ("dev", "proc", "sys", "root", "run", "etc", "mnt", "var"):
        archive.folder(name)
    archive.folder("tmp", 0o1777)
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3, 0o666)
    for path in OPENED if has_driver(brought) else ():
        root.add(f"{brought.multiarch}/{path}")
    for path in OPENED_LATER:
        if (brought.tree / brought.multiarch / path).exists():
            root.add(f"{brought.multiarch}/{path}")
    for path in FOLDERS:
        root.add_folder(path)
    root.add("usr/bin/busybox")
    for name in programs:
        found = brought.program(name)
        if found is None:
            raise RootFailed(f"no package that was brought has a program {name}")
        root.add(os.path.relpath(found, brought.tree.resolve()))
        for path in DATA.get(name, ()):
            root.add_folder(path)
    for path in files:
        root.add(path)
    loaded = _add_modules(root, release, MODULES)
    for_card = _add_modules(root, release, CARD_MODULES)
    archive.add("etc/passwd", b"root::0:0:root:/root:/bin/sh\n")
    archive.add("etc/group", b"root:x:0:\n")
    archive.add("vc4lab/modules", "".join(f"{path}\n" for path in loaded).encode())
    archive.add("vc4lab/card-modules", "".join(f"{path}\n" for path in for_card).encode())
    archive.add("vc4lab/listen", LISTENER, 0o755)
    archive.add("init", INIT, 0o755)
    archive.close()
    return root


def _add_modules(root: Root, release: str, names: Sequence[str]) -> list[str]:
    """Kernel modules with what they need; their paths in the order in which they are loaded."""
    folder = f"usr/lib/modules/{release}"
    index: dict[str, str] = {}
    for place, _folders, files in os.walk(root.tree.top / folder / "kernel"):
        for name in files:
            stem, dot, _rest = name.partition(".ko")
            if dot:
                path = os.path.relpath(os.path.join(place, name), root.tree.top)
                index[stem.replace("-", "_")] = path
    order: list[str] = []
    built_in = _built_in(root.tree.top / folder)

    def load(name: str, depth: int) -> None:
        plain = name.replace("-", "_")
        if plain in built_in:
            return
        path = index.get(plain)
        if path is None or depth > MAX_DEPTH:
            raise RootFailed(f"{folder}: has no module {name}")
        target = path.removesuffix(".xz")
        if target in root.archive:
            return
        image = _module(root.tree.top / path)
        root.archive.add(target, image)
        for other in module_needs(image):
            load(other, depth + 1)
        order.append("/" + target)

    for name in names:
        load(name, 0)
    return order


def _built_in(folder: Path) -> set[str]:
    """Modules that are part of the kernel."""
    text = read_file(folder / "modules.builtin", LARGEST).decode("utf-8", "replace")
    names = (line.rpartition("/")[2].partition(".ko")[0] for line in text.splitlines())
    return {name.replace("-", "_") for name in names}


def _module(place: Path) -> bytes:
    data = read_file(place, LARGEST)
    if place.suffix != ".xz":
        return data
    try:
        unpacker = lzma.LZMADecompressor()
        image = unpacker.decompress(data, LARGEST)
    except lzma.LZMAError as error:
        raise Unusable(f"is a damaged xz file ({error})", place) from None
    if not unpacker.eof:
        raise Unusable("is a truncated xz file", place)
    return image
