"""User programs started by the mailbox's execute QPU and by registers from ARM code's side."""

import struct

import pytest

from vc4lab.qpu.text.assembler import assemble

AT, LIST, CODE, DATA = 0x100000, 0x110000, 0x120000, 0x130000
MAILBOX = 0xB880
V3D = 0xC00000
HALT = bytes.fromhex("feffffea")
END = "nop ; nop ; thrend\nnop\nnop\n"
STORE_NUMBER = (
    "ldi vw_setup, 0x1a00\nmov vpm, unif\nldi vw_setup, 0x80904000\nmov vw_addr, unif\n"
    "mov -, vw_wait\nmov irq, 1\n" + END
)


def call(machine, tag: int, *values: int) -> int:
    """Send a tag; the first word of its answer."""
    machine.mailbox.at_once = True
    words = [tag, 16, 0, *values, *[0] * (4 - len(values)), 0]
    machine.memory.write(AT, struct.pack(f"<{2 + len(words)}I", 8 + 4 * len(words), 0, *words))
    machine.bus.write(MAILBOX + 0x20, 4, AT | 0xC0000000 | 8)
    machine.bus.read(MAILBOX, 4)
    return machine.memory.u32(AT + 20)


@pytest.fixture
def machine(boot):
    machine = boot(HALT, v3d_factory=None)
    assert call(machine, 0x30012, 1) == 0
    return machine


def prepare(machine, text: str, count: int) -> None:
    machine.memory.write(CODE, assemble(text).bytes)
    for number in range(count):
        uniforms = LIST + 0x100 + 16 * number
        pair = struct.pack("<II", uniforms | 0xC0000000, CODE | 0xC0000000)
        machine.memory.write(LIST + 8 * number, pair)
        machine.memory.write(uniforms, struct.pack("<II", 100 + number, DATA + 64 * number))


def test_execute_qpu(machine) -> None:
    prepare(machine, STORE_NUMBER, 12)
    assert call(machine, 0x30011, 12, LIST | 0xC0000000, 1, 5000) == 0
    assert [machine.memory.u32(DATA + 64 * n) for n in range(12)] == list(range(100, 112))
    assert machine.v3d.read(0xE30) == 0xFFF


def test_execute_qpu_deadlock_is_an_error(machine) -> None:
    prepare(machine, "sacq -, 1\n" + END, 2)
    assert call(machine, 0x30011, 2, LIST, 0, 5000) == 0x80000000
    assert machine.reporter.has("QPU-050")
    assert "semaphore 1" in machine.v3d_bridge.waiting


def test_programs_run_while_the_cpu_looks_at_memory_only(machine) -> None:
    prepare(machine, STORE_NUMBER, 1)
    machine.bus.write(V3D + 0x434, 4, LIST + 0x100)
    machine.bus.write(V3D + 0x430, 4, CODE)
    assert machine.memory.u32(DATA) == 0
    machine.run(seconds=0.001)
    assert machine.memory.u32(DATA) == 100


LOAD_ROW = "ldi vr_setup, 0x83011000\nmov vr_addr, unif\n"
"""One row of 16 words into the VPM's first."""
READ_ROW = "ldi vr_setup, 0x00101a00\nnop\nnop\nnop\nmov r0, vpm\n"
WRITE_ROW = "ldi vw_setup, 0x1a00\nmov vpm, r0\nldi vw_setup, 0x80904000\nmov vw_addr, unif\n"
WAIT_LOAD, WAIT_STORE = "mov -, vr_wait\n", "mov -, vw_wait\n"


def copied(machine, text: str, times: int = 1) -> list[str]:
    """Codes of the messages about a program that copies a row, started by the queue's registers."""
    machine.memory.write(CODE, assemble(text + END).bytes)
    machine.memory.write(LIST, struct.pack("<II", DATA, DATA + 64))
    machine.memory.write(DATA, bytes(range(64)))
    for _ in range(times):
        machine.bus.write(V3D + 0x434, 4, LIST)
        machine.bus.write(V3D + 0x430, 4, CODE)
        machine.run(seconds=0.0002)
    assert machine.memory.read(DATA + 64, 64) == bytes(range(64))
    return [item.code for item in machine.reporter.items if item.code.startswith("QPU-")]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOAD_ROW + WAIT_LOAD + READ_ROW + WRITE_ROW + WAIT_STORE, []),
        (LOAD_ROW + READ_ROW + WRITE_ROW + WAIT_STORE, ["QPU-065"]),
        (LOAD_ROW + WAIT_LOAD + READ_ROW + WRITE_ROW, ["QPU-066"]),
    ],
)
def test_transfers_that_a_program_does_not_wait_for(boot, text, expected, engine) -> None:
    """Each is through at once here, so that the result is right: a board's need not be."""
    machine = boot(HALT, v3d_factory=None, engine=engine)
    call(machine, 0x30012, 1)
    assert copied(machine, text) == expected


def test_only_a_programs_first_starts_are_watched(machine) -> None:
    """From then on it is compiled without the watch, and does the same."""
    text = LOAD_ROW + WAIT_LOAD + READ_ROW + WRITE_ROW
    assert copied(machine, text, times=40) == ["QPU-066"]
    assert machine.reporter.counts["QPU-066"] == 12
    code = machine.v3d.programs.unit.code.read(CODE)
    assert code.allowed is None
    assert machine.v3d.programs.completed == 40
