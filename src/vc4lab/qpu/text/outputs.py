"""An assembled program as source of C, Python and the GNU assembler, and as hex words."""

from __future__ import annotations

from collections.abc import Iterator

from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.assembly import Assembly

_MADE = "Made by vc4lab asm; do not edit."


def identifier(text: str) -> str:
    """A name of C, made of any text."""
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in text)
    return f"_{name}" if not name or name[0].isdigit() else name


def hex_words(assembly: Assembly) -> str:
    """One word a line."""
    return "".join(f"{word:016x}\n" for word in assembly.words)


def exported(assembly: Assembly) -> dict[str, int]:
    """The labels that others see, with their offsets: all, unless the source names some."""
    return {
        label: address - assembly.address
        for label, address in assembly.labels.items()
        if not assembly.exported or label in assembly.exported
    }


def _comment(text: str) -> str:
    """A source line inside a comment of C."""
    text = text.replace("*/", "* /").replace("/*", "/ *")
    return text.encode("ascii", "replace").decode()


def _rows(assembly: Assembly) -> Iterator[tuple[list[str], int, str]]:
    """The labels in front of each word, the word, its source."""
    labels = assembly.labels_at()
    for index, word in enumerate(assembly.words):
        at = assembly.address + INSTRUCTION_BYTES * index
        yield labels.get(at, []), word, _comment(assembly.text(index))


def c_source(assembly: Assembly, name: str) -> str:
    """An aligned array ``name`` of 32-bit halves, and ``NAME_LABEL`` offsets."""
    rows = [f"/* {_MADE} */", "#include <stdint.h>", ""]
    for label, offset in exported(assembly).items():
        macro = f"{name}_{label}".upper().replace(".", "_").replace("$", "_")
        rows.append(f"#define {macro} 0x{offset:x}u")
    rows += ["", f"static const uint32_t {name}[] __attribute__((aligned(16))) = {{"]
    for labels, word, comment in _rows(assembly):
        rows += [f"    /* {label}: */" for label in labels]
        rows.append(f"    0x{word & 0xFFFFFFFF:08x}, 0x{word >> 32:08x}, /* {comment} */")
    return "\n".join([*rows, "};", ""])


def python_source(assembly: Assembly, name: str) -> str:
    """A tuple ``NAME`` of 64-bit words, and a dictionary ``NAME_LABELS`` of byte offsets."""
    constant = name.upper()
    rows = [f"# {_MADE}", "", f"{constant} = ("]
    for labels, word, comment in _rows(assembly):
        rows += [f"    # {label}:" for label in labels]
        rows.append(f"    0x{word:016x},  # {comment}")
    rows += [")", "", f"{constant}_LABELS = {{"]
    rows += [f"    {label!r}: 0x{offset:x}," for label, offset in exported(assembly).items()]
    return "\n".join([*rows, "}", ""])


def gnu_source(assembly: Assembly, name: str) -> str:
    """`.word` lines for the GNU assembler of ARM, with symbols of the program and its labels.

    The symbols are ``name``, ``name_end``, ``name_size`` (absolute) and ``name_LABEL``.
    """
    rows = [
        f"/* {_MADE} */",
        "    .section .rodata",
        "    .balign 16",
        f"    .global {name}, {name}_end, {name}_size",
        f"{name}:",
    ]
    shown = exported(assembly)
    for labels, word, comment in _rows(assembly):
        for label in labels:
            if label in shown:
                symbol = identifier(f"{name}_{label}")
                rows += [f"    .global {symbol}", f"{symbol}:"]
            else:
                rows.append(f"    /* {_comment(label)}: */")
        rows.append(f"    .word 0x{word & 0xFFFFFFFF:08x}, 0x{word >> 32:08x} /* {comment} */")
    rows += [f"{name}_end:", f"    .equ {name}_size, {name}_end - {name}", ""]
    return "\n".join(rows)
