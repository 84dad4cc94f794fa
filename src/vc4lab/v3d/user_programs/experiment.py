"""A program, some memory and some uniforms: what `vc4lab run` puts together, runs and shows.

Memory areas have names; uniforms are written as text, so that an address is `c` or `c + 256*qpu`.
Every mistake in the text is a ValueError with a sentence.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from vc4lab.diagnostics import Reporter
from vc4lab.files import read_file
from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.options import GpuOptions, chosen
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES, words_of
from vc4lab.qpu.lint.lint import lint
from vc4lab.ranges import COUNT, OFFSET, QPU_COUNT, UNIFORM
from vc4lab.v3d.job_time import QPUS
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS, Unknowns
from vc4lab.v3d.user_programs.float_uniforms import FloatUse, float_uses, is_small_integer
from vc4lab.v3d.user_programs.scheduler import UserPrograms
from vc4lab.v3d.user_programs.watching.watch import Allowed, Memory

if TYPE_CHECKING:
    from pathlib import Path

CODE = 0x1000
UNIFORMS = 0x100000
UNIFORM_SPACE = 0x100000
"""Bytes of uniforms for each QPU."""


def uniforms_address(qpu: int) -> int:
    """The address of the uniforms of the qpu-th program."""
    return UNIFORMS + UNIFORM_SPACE * qpu


AREAS = UNIFORMS + QPUS * UNIFORM_SPACE
ALIGNMENT = 4096
LARGEST_AREA = 256 << 20
"""Bytes that are read from one file."""
PER_LINE = 8
SHOWN = {"hex": "u4", "int": "i4", "float": "f4"}
_NAME = re.compile(r"[A-Za-z_]\w*$")
_TERM = re.compile(r"([-+]?)\s*([^\s+*-]+|\d[\w.]*[eE]-\d+)\s*(?:\*\s*(qpu))?\s*")


@dataclass(frozen=True)
class Area:
    """A piece of guest memory with a name."""

    name: str
    address: int
    size: int


@dataclass
class Report:
    """How a run went: programs completed, instructions executed, wall time, what still waits."""

    started: int
    completed: int
    instructions: int
    seconds: float
    waiting: list[str]
    areas: dict[str, Area] = field(default_factory=dict)


class Experiment:
    """Guest memory with a program in it.

    engine, threads, unknowns, budget: see `GpuOptions`; gpu: these as one object, instead of them.

    check: check the program (`lint`) and watch it while it runs
    (`v3d/user_programs/watching/watch.py`). raw: indices of words that need not be instructions.
    """

    def __init__(
        self,
        code: bytes,
        *,
        entry: int = 0,
        engine: str = "jit",
        threads: int | None = None,
        budget: int | None = None,
        reporter: Reporter | None = None,
        unknowns: Unknowns = DEFAULT_UNKNOWNS,
        check: bool = True,
        raw: Collection[int] = (),
        gpu: GpuOptions | None = None,
    ) -> None:
        if not code or len(code) % 8:
            raise ValueError("a program must consist of 64-bit words and not be empty")
        entry = OFFSET.check(entry)
        if entry >= len(code) or entry % 8:
            raise ValueError(f"entry {entry}: not an instruction of a program of {len(code)} bytes")
        if len(code) > UNIFORMS - CODE:
            raise ValueError(f"a program of {len(code)} bytes: at most {UNIFORMS - CODE} fit")
        self.memory = GuestMemory()
        self.memory.write(CODE, code)
        self.entry = CODE + entry
        self.areas: dict[str, Area] = {}
        self._end = AREAS
        self.qpus = 0
        self.reporter = reporter if reporter is not None else Reporter()
        self.code, self.raw = code, raw
        self.allowed = Allowed(stops=self.reporter.strict) if check else None
        gpu = chosen(gpu, GpuOptions(engine, threads, unknowns, budget))
        self._told: set[FloatUse] = set()
        self.programs = UserPrograms(self.memory, self.reporter, gpu, self.allowed)

    def __repr__(self) -> str:
        areas = ", ".join(f"{a.name} 0x{a.address:08x}" for a in self.areas.values())
        return f"<Experiment: program at 0x{self.entry:08x}, memory: {areas or 'none'}>"

    def add_area(self, text: str, folder: Path | None = None) -> Area:
        """`name=4096` (bytes, zero) or `name=@file`; OSError if the file cannot be read."""
        name, found, what = text.partition("=")
        name, what = name.strip(), what.strip()
        if not found or not _NAME.match(name) or name == "qpu" or name in self.areas:
            raise ValueError(f"memory {text!r}: expected NAME=BYTES or NAME=@FILE, each name once")
        data = b""
        if what.startswith("@"):
            from pathlib import Path as Place

            room = max(MEMORY_SIZE - self._end, 0)
            data = read_file((folder or Place()) / what[1:], min(room, LARGEST_AREA))
            size = len(data)
        else:
            size = _integer(what)
        if not 0 < size <= MEMORY_SIZE - self._end:
            raise ValueError(f"memory {text[:80]!r}: {_bytes(size)} do not fit")
        area = self.areas[name] = Area(name, self._end, size)
        self.memory.write(area.address, data)
        self._end = -(-(self._end + size) // ALIGNMENT) * ALIGNMENT
        if self.allowed is not None:
            self.allowed.memories.append(Memory(name, area.address, size))
        return area

    def lint(self) -> None:
        """Report the restrictions that the program breaks on some way it can go."""
        for finding in lint(words_of(self.code), self.raw):
            address = CODE + INSTRUCTION_BYTES * finding.index
            self.reporter.report(finding.code, finding.message, address=address, block="QPU")

    def uniform_words(self, text: str, qpu: int) -> list[int]:
        """The words that a list like `c + 256*qpu, 16, 1.5` means for one QPU."""
        return [self._word(part, qpu) for part in text.split(",") if part.strip()]

    def _word(self, text: str, qpu: int) -> int:
        total, at, text = 0, 0, text.strip()
        try:
            found: int = struct.unpack("<I", struct.pack("<f", _float(text)))[0]
            return found
        except ValueError:
            pass
        except OverflowError:
            raise ValueError(f"uniform {text!r} is too large for a float") from None
        while at < len(text):
            match = _TERM.match(text, at)
            if match is None or (at and not match[1]):
                raise ValueError(f"uniform {text!r}: expected numbers, memory names, qpu and + - *")
            value = self._value(match[2], qpu) * (qpu if match[3] else 1)
            total += -value if match[1] == "-" else value
            at = match.end()
        try:
            return UNIFORM.check(total) & 0xFFFFFFFF
        except ValueError:
            raise ValueError(f"uniform {text[:40]!r} has more than 32 bits") from None

    def _value(self, text: str, qpu: int) -> int:
        if text == "qpu":
            return qpu
        if text in self.areas:
            return self.areas[text].address
        if _NAME.match(text):
            known = ", ".join(self.areas) or "none"
            raise ValueError(f"there is no memory called {text!r} (known: {known})")
        return _integer(text)

    def run(self, qpus: int, uniforms: Sequence[str] = ()) -> Report:
        """Run the program on so many QPUs, until each has ended or waits; see `start`."""
        self.start(qpus, uniforms)
        begin = time.perf_counter()
        self.programs.settle()
        seconds = time.perf_counter() - begin
        self.programs.look()
        self.programs.look()
        running = self.programs.running.values()
        count = self.programs.instructions + sum(qpu.instructions for qpu in running)
        return Report(
            self.qpus, self.programs.completed, count, seconds, self.programs.waiting_each, self.areas
        )

    def start(self, qpus: int, uniforms: Sequence[str] = ()) -> None:
        """Give the program to so many QPUs, which execute nothing yet; the n-th uniform list is for
        the n-th, the last one for all that follow.
        """
        self.qpus = qpus = QPU_COUNT.check(qpus)
        for text in uniforms[qpus:]:
            self.uniform_words(text, 0)  # not used, but checked
        for qpu in range(qpus):
            text = uniforms[min(qpu, len(uniforms) - 1)] if uniforms else ""
            words = self.uniform_words(text, qpu)
            if 4 * len(words) > UNIFORM_SPACE:
                raise ValueError(f"{len(words)} uniforms: at most {UNIFORM_SPACE // 4} fit")
            place = uniforms_address(qpu)
            self.memory.write(place, struct.pack(f"<{len(words)}I", *words))
            if self.allowed is not None:
                self.allowed.uniforms[place] = 4 * len(words)
                self._check_floats(words, qpu)
            self.programs.request(self.entry, place, 0)
        if self.allowed is not None:
            self.lint()

    def _check_floats(self, words: list[int], qpu: int) -> None:
        """Report integers that the program takes for floats, once for each place."""
        for use in self._float_uses:
            word = words[use.uniform] if use.uniform < len(words) else 0
            if not is_small_integer(word) or use in self._told:
                continue
            self._told.add(use)
            number = word - (1 << 32) if word >> 31 else word
            (meant,) = struct.unpack("<f", struct.pack("<I", word))
            self.reporter.report(
                "QPU-069",
                f"uniform {use.uniform} of QPU {qpu} is the integer {number} (0x{word:08x}), but "
                f"is used as a float, where these bits mean {meant:.3g}; write {number}.0",
                address=CODE + INSTRUCTION_BYTES * use.at,
                block="QPU",
            )

    @cached_property
    def _float_uses(self) -> list[FloatUse]:
        return list(float_uses(words_of(self.code), (self.entry - CODE) // INSTRUCTION_BYTES))

    def dump(self, text: str) -> str:
        """`name`, `name:float` or `name:int:64` (words) as lines of text, hex by default."""
        name, _, rest = text.partition(":")
        form, _, count = rest.partition(":")
        form = form or "hex"
        if name not in self.areas or form not in SHOWN:
            known = ", ".join(self.areas) or "none"
            raise ValueError(f"dump {text!r}: not NAME[:hex|int|float[:WORDS]], NAME of {known}")
        area = self.areas[name]
        size = max(area.size // 4, 1)
        words = min(COUNT.check(_integer(count)) if count else size, size)
        values = self.memory.array(area.address, words, SHOWN[form])
        lines = []
        for at in range(0, len(values), PER_LINE):
            row = values[at : at + PER_LINE].tolist()
            shown = " ".join(_shown(value, form) for value in row)
            lines.append(f"{name}+0x{4 * at:04x}: {shown}")
        return "\n".join(lines)


def _bytes(size: int) -> str:
    return f"{size} bytes" if abs(size) < 1 << 64 else "so many bytes"


def _shown(value: float, form: str) -> str:
    if form == "hex":
        return f"{int(value):08x}"
    return f"{int(value):>11}" if form == "int" else f"{value:>13.6g}"


def _float(text: str) -> float:
    """A number with a point or an exponent; ValueError for anything else."""
    if text.lower().startswith(("0x", "+0x", "-0x")) or not re.search(r"[.eE]|inf|nan", text):
        raise ValueError(text)
    return float(text)


def _integer(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a number") from None
