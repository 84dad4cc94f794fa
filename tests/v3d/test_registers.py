"""Registers for interrupts and errors: what sets them, what clears them, who waits."""

import struct

import pytest
from tests.support.frames import ARRAY, CORNERS, RED, Frame, solid, triangle
from tests.support.jobs import CT0CA, CT0EA, CT1CA, CT1EA, viewport

from vc4lab.records.control import build
from vc4lab.v3d.core import FLDONE, FRDONE, OUTOMEM, SPILLUSE, V3D
from vc4lab.v3d.registers import BY_NAME, BY_OFFSET, Errors, PipelineStatus
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

INTERRUPTING = """
    mov irq, {value} ; nop
    nop ; nop ; thrend
    nop
    nop
"""

ATTRIBUTES = """
    ldi vr_setup, 0x201a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, vpm ; nop
{writes}
    nop ; nop ; thrend
    nop
    nop
"""


def read(v3d: V3D, name: str) -> int:
    return v3d.read(BY_NAME[name].offset)


def write(v3d: V3D, name: str, value: int) -> None:
    v3d.write(BY_NAME[name].offset, value)


def scene(frame: Frame) -> bytes:
    return viewport(frame.job) + frame.nv_shader(solid(RED), triangle(*CORNERS), 0) + ARRAY


def test_the_index_has_the_registers_that_the_v3d_has() -> None:
    v3d = Frame().v3d
    assert set(v3d._readers) | set(v3d._writers) == set(BY_OFFSET)
    assert set(v3d.values) == set(BY_NAME)
    only_written = {BY_OFFSET[offset].name for offset in set(v3d._writers) - set(v3d._readers)}
    assert only_written == {"SLCACTL", "SRQPC", "PCTRC"}
    assert {v3d.read(BY_NAME[name].offset) for name in only_written} == {0}


def test_enabling_and_disabling() -> None:
    frame = Frame()
    v3d = frame.v3d
    write(v3d, "INTENA", FRDONE | OUTOMEM)
    write(v3d, "INTENA", FLDONE)
    write(v3d, "INTDIS", OUTOMEM)
    assert read(v3d, "INTENA") == read(v3d, "INTDIS") == FRDONE | FLDONE
    write(v3d, "INTENA", 0xFFFFFFF0)
    assert read(v3d, "INTENA") == FRDONE | FLDONE, "there are four interrupts"
    other = Frame(unknowns=DEFAULT_UNKNOWNS.with_(intdis_reads="zero")).v3d
    write(other, "INTENA", 15)
    assert (read(other, "INTDIS"), read(other, "INTENA")) == (0, 15)


def test_the_line_follows_status_and_enable() -> None:
    frame = Frame()
    v3d = frame.v3d
    levels: list[bool] = []
    v3d.on_interrupt = levels.append
    frame.bin(scene(frame))
    assert read(v3d, "INTCTL") == FRDONE | FLDONE
    assert not levels, "nothing is enabled"
    write(v3d, "INTENA", FLDONE)
    assert levels == [True], "enabling a pending interrupt raises the line"
    write(v3d, "INTCTL", FRDONE)
    assert levels == [True]
    write(v3d, "INTDIS", FLDONE)
    assert levels == [True, False]
    write(v3d, "INTENA", FLDONE)
    write(v3d, "INTCTL", FLDONE)
    assert levels == [True, False, True, False]
    assert read(v3d, "INTCTL") == 0
    write(v3d, "INTCTL", 0xFFFFFFFF)
    assert read(v3d, "INTCTL") == 0


def test_out_of_memory_stays_until_there_is_memory() -> None:
    """As Linux handles it: disable, supply, acknowledge, enable again."""
    frame = Frame(64, 64)
    job, v3d = frame.job, frame.v3d
    many = b"".join(triangle((1, 1), (1 + k % 60, 60), (60, 2)) for k in range(400))
    shader = frame.nv_shader(solid(RED), many, 0)
    body = build(112, address=job.room(8192), memory_size=96, tiles_x=1, tiles_y=1,
                 auto_initialise=1)  # fmt: skip
    body += build(6) + viewport(job) + shader + build(33, mode=4, length=1200, first=0) + build(4)
    start = job.put(body)
    levels: list[bool] = []
    v3d.on_interrupt = levels.append
    write(v3d, "INTENA", OUTOMEM)
    v3d.write(CT0CA, start)
    v3d.write(CT0EA, start + len(body))
    assert levels == [True]
    write(v3d, "INTCTL", OUTOMEM)
    assert read(v3d, "INTCTL") & OUTOMEM, "level: the condition is still there"
    assert PipelineStatus(read(v3d, "PCS")).BMOOM
    assert "BPOS" in str(v3d.waiting)
    write(v3d, "INTDIS", OUTOMEM)
    assert levels == [True, False]
    write(v3d, "BPOA", job.room(65536))
    write(v3d, "BPOS", 65536)
    assert not PipelineStatus(read(v3d, "PCS")).BMOOM
    write(v3d, "INTCTL", OUTOMEM)
    write(v3d, "INTENA", OUTOMEM)
    assert read(v3d, "INTCTL") == FLDONE | SPILLUSE
    assert levels == [True, False]
    assert v3d.waiting is None


def start_program(frame: Frame, text: str) -> None:
    write(frame.v3d, "SRQPC", frame.job.program(text))
    frame.v3d.settle()


def test_interrupts_of_user_programs() -> None:
    frame = Frame()
    v3d = frame.v3d
    levels: list[bool] = []
    v3d.on_interrupt = levels.append
    write(v3d, "DBQITE", 0xFFFF)
    start_program(frame, INTERRUPTING.format(value=0))
    assert read(v3d, "DBQITC") == 0, "zero interrupts no core"
    start_program(frame, INTERRUPTING.format(value=1))
    pending = read(v3d, "DBQITC")
    assert pending
    assert pending & (pending - 1) == 0, "one QPU"
    assert levels == [True]
    write(v3d, "DBQITC", 0)
    assert read(v3d, "DBQITC") == pending
    write(v3d, "DBQITC", pending)
    assert read(v3d, "DBQITC") == 0
    assert levels == [True, False]


@pytest.mark.parametrize(("choice", "seen"), [("always", True), ("enabled", False)])
def test_interrupts_that_are_not_enabled(choice: str, seen: bool) -> None:
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(dbqitc_set=choice))
    start_program(frame, INTERRUPTING.format(value=1))
    assert bool(read(frame.v3d, "DBQITC")) == seen
    assert not frame.v3d.interrupt_pending


@pytest.mark.parametrize(("choice", "pending"), [("free", True), ("needed", False)])
def test_interrupts_without_the_debug_configuration(choice: str, pending: bool) -> None:
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(dbcfg_interrupts=choice))
    write(frame.v3d, "DBQITE", 0xFFFF)
    start_program(frame, INTERRUPTING.format(value=1))
    assert frame.v3d.interrupt_pending is pending
    write(frame.v3d, "DBCFG", 1)
    assert frame.v3d.interrupt_pending


@pytest.mark.parametrize(("choice", "kept"), [("plain", True), ("zero", False)])
def test_registers_that_nobody_describes(choice: str, kept: bool) -> None:
    v3d = Frame(unknowns=DEFAULT_UNKNOWNS.with_(undocumented_registers=choice)).v3d
    names = ["DBSCS", "DBSCFG", "DBSSR", "DBSDR0", "DBSDR3", "DBQRUN", "DBQHLT", "DBQSTP"]
    names += ["DBQGHC", "DBQGHG", "DBQGHH"]
    for name in names:
        write(v3d, name, 0x1234)
        assert read(v3d, name) == (0x1234 if kept else 0), name
    for name in ("IDENT3", "SQCSTAT"):
        write(v3d, name, 1)
        assert read(v3d, name) == 0
    write(v3d, "DBCFG", 1)
    write(v3d, "DBQITE", 3)
    assert (read(v3d, "DBCFG"), read(v3d, "DBQITE")) == (1, 3)


@pytest.mark.parametrize(("choice", "state"), [("disable", 0), ("enable", 1)])
def test_the_level_2_cache_switch(choice: str, state: int) -> None:
    v3d = Frame(unknowns=DEFAULT_UNKNOWNS.with_(l2cactl_both=choice)).v3d
    for value, expected in ((1, 1), (0, 1), (4, 1), (2, 0), (3, state), (5, 1)):
        write(v3d, "L2CACTL", value)
        assert read(v3d, "L2CACTL") == expected


@pytest.mark.parametrize(("choice", "left"), [("nothing", 1), ("clear", 0)])
def test_counts_of_flushes_and_frames(choice: str, left: int) -> None:
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(count_write_zero=choice))
    frame.bin(scene(frame))
    for name in ("BFC", "RFC"):
        assert read(frame.v3d, name) == 1
        write(frame.v3d, name, 2)
        assert read(frame.v3d, name) == 1
        write(frame.v3d, name, 0)
        assert read(frame.v3d, name) == left
        write(frame.v3d, name, 1)
        assert read(frame.v3d, name) == 0


TESTED = """
    nop ; nop ; sbwait
    mov tlbz, rb15
    nop
    nop
    ldi r0, {colour:#x}
    mov tlbc, r0 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


@pytest.mark.parametrize(("choice", "drawn"), [("rejects", False), ("passes", True)])
def test_never_is_a_depth_function(choice: str, drawn: bool) -> None:
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(depth_never=choice))
    body = viewport(frame.job, 0x03)  # depth function 0
    body += frame.nv_shader(TESTED.format(colour=RED), triangle(*CORNERS), 0) + ARRAY
    picture = frame.bin(body)
    assert bool((picture == RED).any()) == drawn


@pytest.mark.parametrize("choice", ["written", "paths"])
def test_counters_of_coverage(choice: str) -> None:
    """Counter 9 counts the same either way."""
    frame = Frame(unknowns=DEFAULT_UNKNOWNS.with_(counter_coverage=choice))
    for number, source in enumerate((7, 8, 9)):
        write(frame.v3d, f"PCTRS{number}", source)
    write(frame.v3d, "PCTRE", 1 << 31 | 7)
    frame.bin(scene(frame))
    none, some, written = (read(frame.v3d, f"PCTR{number}") for number in range(3))
    assert written > 100
    assert some == (written if choice == "written" else 0)
    assert none == 0


# -- ERRSTAT -------------------------------------------------------------------------------------


def test_no_errors() -> None:
    frame = Frame()
    assert read(frame.v3d, "ERRSTAT") == 0
    frame.bin(scene(frame))
    assert read(frame.v3d, "ERRSTAT") == 0
    write(frame.v3d, "ERRSTAT", 0xFFFF)
    assert read(frame.v3d, "ERRSTAT") == 0, "read-only"
    idle = Frame(unknowns=DEFAULT_UNKNOWNS.with_(errstat_vcdi="idle")).v3d
    assert read(idle, "ERRSTAT") == Errors.VCDI.mask


def test_an_index_above_the_maximum() -> None:
    frame = Frame()
    indices = frame.job.put(struct.pack("<3H", 0, 1, 2))
    draw = build(32, mode=4, index_type=1, length=3, address=indices, maximum_index=1)
    body = viewport(frame.job) + frame.nv_shader(solid(RED), triangle(*CORNERS), 0) + draw
    frame.bin(body)
    assert frame.reporter.has("CLE-014")
    assert Errors(read(frame.v3d, "ERRSTAT")).VCMBE


def gl_shader(frame: Frame, size: int, writes: int) -> bytes:
    """A record 64 whose coordinate shader reads two rows and writes so many."""
    job = frame.job
    vertices = job.put(bytes(8 * 16))
    text = ATTRIBUTES.format(writes="    mov vpm, r0 ; nop\n" * writes)
    coordinate = job.program(text)
    vertex = job.program(ATTRIBUTES.format(writes="    mov vpm, r0 ; nop\n" * 3))
    record = struct.pack("<HBBII", 1, 0, 0, job.program(solid(RED)), 0)
    for code in (vertex, coordinate):
        record += struct.pack("<HBBII", 0, 1, size, code, 0)
    record += struct.pack("<IBBBB", vertices, 7, 8, 0, 0)
    return build(64, address=job.put(record), attributes=1)


@pytest.mark.parametrize(
    ("size", "writes", "code", "bit"),
    [
        (8, 7, None, 0),
        (4, 7, "VTX-003", Errors.VPMERNA.mask),
        (8, 9, "VTX-006", Errors.VPMEWNA.mask),
        (8, 5, "VTX-004", 0),
    ],
)
def test_vpm_errors_of_shaders(size: int, writes: int, code: str | None, bit: int) -> None:
    frame = Frame(64, 64)
    start, end, _ = frame.job.binning(viewport(frame.job) + gl_shader(frame, size, writes) + ARRAY)
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, end)
    assert [item.code for item in frame.reporter.items] == ([code] if code else [])
    assert read(frame.v3d, "ERRSTAT") == bit


def test_vpmbase_while_busy() -> None:
    frame = Frame()
    write(frame.v3d, "VPMBASE", 16)
    assert read(frame.v3d, "ERRSTAT") == 0
    waiting = frame.job.put(build(8) + build(1))
    frame.v3d.write(CT1CA, waiting)
    frame.v3d.write(CT1EA, waiting + 2)
    write(frame.v3d, "VPMBASE", 8)
    assert Errors(read(frame.v3d, "ERRSTAT")).VPAEABB


# -- who waits for what ----------------------------------------------------------------------------


def test_a_halt_is_named_where_somebody_waits() -> None:
    frame = Frame()
    v3d = frame.v3d
    halting = frame.job.put(build(0) + build(1))
    v3d.write(CT0CA, halting)
    v3d.write(CT0EA, halting + 2)
    assert v3d.waiting is None
    waiting = frame.job.put(build(8) + build(1))
    v3d.write(CT1CA, waiting)
    v3d.write(CT1EA, waiting + 2)
    text = str(v3d.waiting)
    assert "rendering thread" in text
    assert "waits for record 8" in text
    assert f"binning thread is halted (CT0CA = 0x{halting + 1:08x})" in text


@pytest.mark.parametrize("number", [0, 1])
def test_the_return_address_of_a_halted_sub_list(number: int) -> None:
    frame = Frame()
    v3d = frame.v3d
    halting = frame.job.put(build(0) + build(1))
    calling = frame.job.put(build(1) + build(17, address=halting) + build(1))
    assert read(v3d, f"CT0{number}RA0") == 0
    write(v3d, f"CT{number}CA", calling)
    write(v3d, f"CT{number}EA", calling + 7)
    assert read(v3d, f"CT{number}CA") == halting + 1
    assert read(v3d, f"CT0{number}RA0") == calling + 6


def test_errors_are_named() -> None:
    frame = Frame()
    wrong = frame.job.put(b"\xf0")
    frame.v3d.write(CT0CA, wrong)
    frame.v3d.write(CT0EA, wrong + 1)
    assert "stopped with an error" in str(frame.v3d.waiting)
    write(frame.v3d, "CT0CS", 1 << 15)
    assert frame.v3d.waiting is None


def test_user_programs_that_wait_are_named() -> None:
    frame = Frame()
    start_program(frame, "sacq -, 3\nnop ; nop ; thrend\nnop\nnop\n")
    assert "semaphore 3" in str(frame.v3d.waiting)
