"""Which dialect a source is in, and its assembler.

assembly = assemble_source(text)                       # the dialect shows in the text
assembly = assemble_source(text, dialect="vc4asm", path="shader.qasm")
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from vc4lab.qpu.text import assembler as qpuasm
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.syntax import AssemblyError, SourceError, unknown

Number = int | float
Folders = Sequence[str | os.PathLike[str]]


def _qpuasm(text: str, path: str, folders: Folders, symbols: Mapping[str, Number]) -> Assembly:
    return qpuasm.assemble(text, symbols=symbols)


def _vc4asm(text: str, path: str, folders: Folders, symbols: Mapping[str, Number]) -> Assembly:
    from vc4lab.qpu.dialects.vc4asm.assembler import assemble

    return assemble(text, path=path, folders=folders, symbols=symbols)


def _qpu_asm(text: str, path: str, folders: Folders, symbols: Mapping[str, Number]) -> Assembly:
    from vc4lab.qpu.dialects.qpu_asm import assemble

    return assemble(text, path=path, folders=folders, symbols=symbols)


def _qasm2(text: str, path: str, folders: Folders, symbols: Mapping[str, Number]) -> Assembly:
    from vc4lab.qpu.dialects.qasm2 import assemble

    return assemble(text, path=path, folders=folders, symbols=symbols)


DIALECTS: Final[dict[str, Callable[[str, str, Folders, Mapping[str, Number]], Assembly]]] = {
    "qpuasm": _qpuasm,
    "vc4asm": _vc4asm,
    "qpu-asm": _qpu_asm,
    "qasm2": _qasm2,
}
"""Name of each dialect -> its assembler. The first is taken where a text is of several."""

_MARKS: Final = {
    "vc4asm": re.compile(
        r"""^\s*\.(?:include|macro|endm|func|rep|endr|foreach|if|elseif|else|endif|ifset|const
        |unset|lset|lconst|local|endloc|back|endb|clone|align|assert|int|short|byte|float|half|long)\b
        | ^\s*:{1,2}\w+\s*(?:\#|$) | ,\s*(?:r?:)\w
        | ^\s*\.set\s+\w+\s*\( | ^\s*\.set\s+\w+\s*,\s*r[ab]\d
        | \.if(?:z|nz|n|nn|c|cc|zs|zc|ns|nc|cs)\b | \.(?:un)?pack\d | \binterrupt\b
        | \bmutex_(?:acq|rel)\b | \b(?:sacq|srel)\s*\(?\ *\d
        | \b(?:vpm_setup|v[dr][wr]_setup_[01]p?)\s*\(""",
        re.VERBOSE | re.MULTILINE,
    ),
    "qpu-asm": re.compile(
        r"""^\s*(?:define|include|undefine)\(` | ^\s*nop\.tend\b | \bnop\s+r[ab]39\s*,\s*r[ab]39
        | ^\s*br[ar](?:\.[znc][fesc])?\s+r[ab]39\s*, | \.(?:ldtmu[01]|tend)\s+r""",
        re.VERBOSE | re.MULTILINE,
    ),
    "qasm2": re.compile(r"^\s*(?:alu|bra|li|sem)(?:\s+\w+=\S+)+", re.MULTILINE),
    "qpuasm": re.compile(
        r"""^\s*\.set\s+\w+\s*,\s*function\b | ^\s*\.quad\b | ^\s*[A-Za-z_.$][\w.$]*:(?!:)
        | \b[a-z0-9]+\.(?:zs|zc|ns|nc|cs|cc)\b(?!\s*,\s*r:) | \bload_imm\b | ^\s*li\s
        | /\* | ;\s*pm[01]\b""",
        re.VERBOSE | re.MULTILINE,
    ),
}


def detect(text: str) -> str | None:
    """The dialect of which a text has the most marks; None if there is no such one."""
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    counts = {name: len(marks.findall(code)) for name, marks in _MARKS.items()}
    ranked = sorted(counts, key=lambda name: -counts[name])
    best, second = ranked[0], ranked[1]
    return best if counts[best] > counts[second] else None


def assemble_source(
    text: str,
    *,
    dialect: str | None = None,
    path: str = "",
    folders: Folders = (),
    symbols: Mapping[str, Number] | None = None,
) -> Assembly:
    """Assemble a source of any dialect.

    Parameters
    ----------
    dialect
        Its name; None: as `detect` finds it, else the first other one that assembles the text.
    path, folders
        The file that the text is from, and folders, in which included files are.
    symbols
        Names known beforehand.

    Raises
    ------
    AssemblyError
        With the mistakes as the dialect names them.
    """
    known = dict(symbols or {})
    if dialect is not None and dialect not in DIALECTS:
        message = str(unknown("dialect", dialect, DIALECTS, 0))
        raise AssemblyError([SourceError(1, 1, message)])
    likely = dialect or detect(text)
    names = [dialect] if dialect else sorted(DIALECTS, key=lambda name: name != likely)
    failures: list[AssemblyError] = []
    for name in names:
        try:
            return replace(DIALECTS[name](text, path, folders, known), dialect=name)
        except AssemblyError as error:
            failures.append(error)
    if likely:
        raise failures[0]
    raise min(failures, key=lambda error: len(error.errors) + error.more)
