"""Puts the CPU's place into words: addresses with the names of the program's ELF file, if there is one.

A Linux names its functions itself (`kernel_places.py`), and who called them.

The ELF file is the one that was given, the image itself, or a file beside the image: the same name
ending in .elf, or kernel.elf. One that is not the program of the image would give wrong names, so
it is compared first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.soc.boot.boot_plan import BootPlan
from vc4lab.soc.boot.symbols import BadElf, SymbolTable, load_elf
from vc4lab.soc.cores.cpu import Cpu

if TYPE_CHECKING:
    from vc4lab.soc.inspect.kernel_places import KernelPlaces

LINKED_FOR_0 = "kernel_old=1 and disable_commandline_tags=1"
"""Lines of config.txt for an image that is linked for address 0."""


class Places:
    """Writes addresses; `places(0x8014)` is "0x00008014" or "0x00008014 <main+0x14>"."""

    def __init__(self, reporter: Reporter) -> None:
        self.symbols: SymbolTable | None = None
        self._reporter = reporter
        self.kernel: KernelPlaces | None = None
        """Names of a Linux."""
        self._core: Callable[[], Cpu] | None = None

    def __call__(self, address: int) -> str:
        name = self.symbols.name(address) if self.symbols is not None else None
        if name is None and self.kernel is not None:
            name = self.kernel.name(address)
        return f"0x{address:08x}" + (f" <{name}>" if name else "")

    def follow(self, core: Callable[[], Cpu]) -> None:
        """Say with each diagnostic from now on where the core was whose turn it is."""
        self._core = core
        self._reporter.where = self._of_cpu

    def _of_cpu(self) -> str | None:
        if self._core is None:
            return None
        cpu = self._core()
        if not cpu.counter.count:
            return None
        callers = self.kernel.callers() if self.kernel is not None else []
        return self(cpu.engine_pc) + (f", called by {', '.join(callers)}" if callers else "")

    def find(self, path: str | os.PathLike[str], plan: BootPlan) -> None:
        """Look for the ELF file of a program that was booted from `path`."""
        place = Path(path)
        folder = place if place.is_dir() else place.parent
        names = (plan.name, f"{Path(plan.name).stem}.elf", "kernel.elf")
        for name in dict.fromkeys(names):
            file = folder / name
            try:
                if not file.is_file():
                    continue
                with file.open("rb") as opened:
                    if opened.read(4) != b"\x7fELF":
                        continue
            except OSError:
                continue
            if self.use(file, plan):
                return

    def use(self, path: Path, plan: BootPlan) -> bool:
        """Take the names of an ELF file; False (and a diagnostic) if that makes no sense."""
        try:
            table = load_elf(path)
        except (BadElf, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            return self._refuse(f"{path.name}: {why}")
        if path.name != plan.name and not table.matches(plan.image, plan.address):
            linked = table.linked_at(plan.image)
            moved = None if linked is None else table.moved(plan.address - linked)
            if linked is None or moved is None or not moved.matches(plan.image, plan.address):
                return self._refuse(f"{path.name} is not the program of {plan.name}")
            self._say_linked_elsewhere(path.name, linked, plan)
            table = moved
        if not len(table):
            return self._refuse(f"{path.name} has no symbols")
        self.symbols = table
        return True

    def _say_linked_elsewhere(self, name: str, linked: int, plan: BootPlan) -> None:
        """The file is that of the program, whose image is loaded to another address."""
        if linked:
            how = f"kernel_address=0x{linked:x} in config.txt loads it there"
        else:
            how = f"{LINKED_FOR_0} in config.txt load it there"
        text = (
            f"{name} is the program of {plan.name}, but linked for 0x{linked:x}, and the image is "
            f"loaded to 0x{plan.address:x}: addresses in it are wrong by "
            f"0x{abs(plan.address - linked):x} unless it is position-independent; link it for "
            f"0x{plan.address:x}, or {how}. Its names are moved"
        )
        self._reporter.report("BOOT-030", text, block="firmware")

    def _refuse(self, why: str) -> bool:
        self._reporter.report("BOOT-030", f"functions are not named: {why}", block="firmware")
        return False
