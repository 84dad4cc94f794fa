"""Reports where the process may not have the memory that it needs."""

from __future__ import annotations

import errno
import os
import resource
import sys

from vc4lab.files import size_text

TEXTS = ("failed to map segment", "cannot allocate memory", "can't start new thread")
"""By which libraries and Python say it without an error number, in lower case."""
NUMPY_NEEDS = 128 << 20
"""Bytes of address space of a process that has imported numpy, with the command around it."""
TRIED = ("llvmlite", "numpy", "unicorn")
"""Libraries of which some say only that they cannot be loaded."""


def lacks_memory(error: BaseException | None) -> bool:
    """Whether an exception, or one that it follows, comes of too little memory."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        text = str(error).lower()
        if any(part in text for part in TEXTS):
            return True
        if _limit() is not None and isinstance(error, (ImportError, OSError)):
            if "load" in text and any(name in text for name in TRIED):
                return True
        error = error.__cause__ or error.__context__
    return False


def memory_sentence() -> str:
    """The sentence, with the process's limit if it has one."""
    limit = _limit()
    may = "there is" if limit is None else f"the {size_text(limit)} that `ulimit -v` allows"
    return (
        f"CLI-008: more memory is needed than {may}. Guest RAM alone takes a GiB of address space, "
        "of which little is used"
    )


class _NoNumpy:
    """Refuses numpy: the library that it loads ends the process with words of its own."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "numpy":
            raise MemoryError


def watch_numpy() -> None:
    """Let numpy make buffers for one thread where memory is limited, and none if that is too much."""
    limit = _limit()
    if limit is None:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit < NUMPY_NEEDS:
        sys.meta_path.insert(0, _NoNumpy())


def _limit() -> int | None:
    """Bytes of address space that the process may have; None: as many as there are."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
