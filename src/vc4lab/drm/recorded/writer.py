"""Writes jobs of live programs to a folder for replay: ``jobNNNN`` and ``blobs``.

A buffer's content is kept as a blob when the buffer first appears, and again when something but the
GPU has changed it: what an earlier job drew is not kept, because replay draws it again. Each job is
written before it runs, under another name, and takes its place when it is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from vc4lab.drm.uapi.submit import NUMBERS, STREAMS, SURFACES, Submit
from vc4lab.files import PREFIX, Unusable, size_text, why, write_file

if TYPE_CHECKING:
    from vc4lab.drm.objects.gem_objects import GemObject
    from vc4lab.memory import GuestMemory

MAX_JOBS = 10_000
MAX_BYTES = 1 << 30
LEVEL = 1
"""The level of compression: the programs wait for it."""


class _Full(Exception):  # noqa: N818 - an end that was asked for
    """The limit of bytes is reached."""


@dataclass
class _Known:
    """The folder's knowledge of a buffer."""

    number: int
    """Unique: handles and addresses are used again."""
    blob: str | None = None
    used: int = 0
    digest: bytes = b""
    """The digest of what it holds, as far as replay knows."""


class JobRecorder:
    """Writes jobs until a limit is reached or the disk is full; then says so and does nothing.

    Raises OSError for a folder that cannot be used.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        memory: GuestMemory,
        *,
        max_jobs: int = MAX_JOBS,
        max_bytes: int = MAX_BYTES,
        on_stop: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.folder = Path(folder)
        self.memory = memory
        self.max_jobs, self.max_bytes = max_jobs, max_bytes
        self.on_stop = on_stop
        self.jobs = 0
        """Recorded so far."""
        self.bytes = 0
        self.failed = False
        """Whether a file could not be written."""
        self.stopped = False
        """Whether a limit was reached or a file could not be written."""
        self._known: WeakKeyDictionary[GemObject, _Known] = WeakKeyDictionary()
        self._numbers = itertools.count(1)
        self._blobs: set[str] = set()
        self.folder.mkdir(parents=True, exist_ok=True)
        old = [p.name for p in self.folder.iterdir() if p.name.startswith(("job", "blobs", PREFIX))]
        if old:
            raise Unusable(f"already contains a run ({old[0]}); choose another", self.folder)
        (self.folder / "blobs").mkdir()

    # -- as jobs run -------------------------------------------------------------------------------

    def before(self, submit: Submit, objects: Sequence[GemObject], facts: Mapping[str, Any]) -> None:
        """A job is about to run. facts: more about it, for readers of the file."""
        if self.stopped:
            return
        if self.jobs >= self.max_jobs:
            self._stop(f"{self.jobs} jobs recorded, the limit (--record-count)")
            return
        try:
            self._write(submit, objects, facts)
        except _Full:
            room = size_text(self.max_bytes)
            self._stop(f"{self.jobs} jobs recorded, the next does not fit in {room}")
        except OSError as error:
            self.failed = True
            self._stop(f"{why(error)}; {self.jobs} jobs recorded so far")

    def after(self, submit: Submit, objects: Sequence[GemObject]) -> None:
        """The job is through: what it wrote is known to replay."""
        if self.stopped:
            return
        for name, surface in submit.surfaces.items():
            if name.endswith("write") and surface.hindex < len(objects):
                target = objects[surface.hindex]
                self._known[target].digest = _digest(self._content(target))

    def _stop(self, text: str) -> None:
        self.stopped = True
        self._known.clear()
        self.on_stop(f"{self.folder}: {text}")

    # -- files -------------------------------------------------------------------------------------

    def _write(self, submit: Submit, objects: Sequence[GemObject], facts: Mapping[str, Any]) -> None:
        table = submit_table(submit)
        table["bos"] = [self._buffer(target) for target in objects]
        table |= facts
        size = sum(len(getattr(submit, name)) for name in STREAMS)
        self._take(size)
        final = self.folder / f"job{self.jobs + 1:04}"
        temporary = self.folder / (PREFIX + os.urandom(8).hex())
        try:
            temporary.mkdir()
            for name in STREAMS:
                write_file(temporary / f"{name}.bin", getattr(submit, name))
            text = json.dumps(table, indent=1).encode()
            write_file(temporary / "submit.json", text)
            temporary.rename(final)
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary)
            raise
        self.jobs += 1

    def _take(self, more: int) -> None:
        """Count bytes that are about to be written. Raises _Full."""
        if self.bytes + more > self.max_bytes:
            raise _Full
        self.bytes += more

    def _buffer(self, target: GemObject) -> dict[str, Any]:
        """A buffer's entry; its content is written if replay does not know it."""
        known = self._known.get(target)
        new = known is None
        if known is None:
            known = self._known[target] = _Known(next(self._numbers))
        changed = False
        if new or not target.private:
            content = self._content(target)
            digest = _digest(content)
            changed = digest != known.digest
            if changed:
                known.digest = digest
                known.blob, known.used = self._blob(content, digest)
        entry: dict[str, Any] = {
            "handle": known.number,
            "addr": target.address,
            "size": target.size,
            "shader": target.private,
            "label": target.label,
            "tiling": target.modifier,
            "used_size": known.used if known.blob is not None else target.size,
        }
        entry |= {"blob": known.blob} if known.blob is not None else {"zero": True}
        if changed and not new:
            entry["whole"] = True
        return entry

    def _blob(self, content: memoryview, digest: bytes) -> tuple[str | None, int]:
        """The name of a content's file, None for nothing but zeros, and how much of it counts."""
        data = bytes(content).rstrip(b"\0")
        if not data:
            return None, 0
        name = f"{digest.hex()}.z"
        if name not in self._blobs:
            packed = zlib.compress(data, LEVEL)
            self._take(len(packed))
            write_file(self.folder / "blobs" / name, packed)
            self._blobs.add(name)
        return name, len(data)

    def _content(self, target: GemObject) -> memoryview:
        size = target.asked if target.private else target.size
        return self.memory.view(target.address, size)


def submit_table(submit: Submit) -> dict[str, Any]:
    """Describe a job for submit.json, besides its buffers."""
    table: dict[str, Any] = {f"{name}_size": len(getattr(submit, name)) for name in STREAMS}
    table |= {name: getattr(submit, name) for name in NUMBERS}
    table["clear_color"] = list(submit.clear_color)
    for name in SURFACES:
        table[name] = dict(vars(submit.surface(name)))
    return table


def _digest(content: memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=10).digest()
