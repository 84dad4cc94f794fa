"""What an assembled program is written as, and read back from: C, Python, `.word` lines, ELF."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from vc4lab.qpu.text.assembler import assemble
from vc4lab.qpu.text.containers import NotFound, elf_code, text_code
from vc4lab.qpu.text.elf import elf_object
from vc4lab.qpu.text.outputs import c_source, gnu_source, hex_words, identifier, python_source

SOURCE = ".global entry\nentry: mov r0, unif # one */ two\nmov r1, 0x12345\nexit: nop; nop; thrend\n"
ASSEMBLY = assemble(SOURCE)


def test_python() -> None:
    names: dict[str, object] = {}
    exec(python_source(ASSEMBLY, "prog"), names)
    assert names["PROG"] == ASSEMBLY.words
    assert names["PROG_LABELS"] == {"entry": 0}


def test_sources_are_read_back() -> None:
    for text in (c_source(ASSEMBLY, "prog"), gnu_source(ASSEMBLY, "prog")):
        assert text_code(text, "prog") == ASSEMBLY.bytes
    assert text_code("x: .quad 0x1\ny:\n .long 2, 3 // z\n .word 4u\n nop\n .word 5", "y") == (
        struct.pack("<3I", 2, 3, 4)
    )
    assert text_code("uint64_t a[2] = { 0x100000000, 2, };", "a") == struct.pack("<2Q", 1 << 32, 2)
    with pytest.raises(NotFound, match="no array or label 'b'"):
        text_code("int a[] = { 1 };", "b")
    assert hex_words(ASSEMBLY).splitlines()[0] == f"{ASSEMBLY.words[0]:016x}"
    assert identifier("1-x") == "_1_x"


def test_elf() -> None:
    data = elf_object(ASSEMBLY, "prog", "prog.qasm")
    assert elf_code(data, "prog") == (ASSEMBLY.bytes, 0)
    assert elf_code(data, "prog_entry") == (ASSEMBLY.bytes, 0)
    with pytest.raises(NotFound, match=r"name a symbol with --symbol \(known: prog, prog_end"):
        elf_code(data, None)
    with pytest.raises(NotFound, match="no symbol 'x'"):
        elf_code(data, "x")
    for cut in range(4, len(data), 7):
        try:
            elf_code(data[:cut], "prog")
        except NotFound:
            continue
    for place in range(4, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        try:
            elf_code(bytes(damaged), "prog")
        except NotFound:
            continue


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no binutils here")
def test_debuggers_find_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "prog.o"
    path.write_bytes(elf_object(ASSEMBLY, "prog", "prog.qasm"))
    command = ["readelf", "--debug-dump=decodedline", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr
    rows = [line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("prog.qasm")]
    assert rows[:3] == [["2", "0"], ["3", "0x8"], ["4", "0x10"]]
