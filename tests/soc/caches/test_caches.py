"""`--caches`: who sees old bytes, on three kinds of cores."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.soc.board import find_board
from vc4lab.soc.caches.cache_lines import DIRTY
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.v3d.unknowns import DEFAULT_UNKNOWNS

HERE = Path(__file__).parents[1]
SCRIPT, MESSAGE, CACHED, SURFACE = 0x100000, 0x180000, 0x200000, 0x400000
STORE, LOAD, CLEAN, INVALIDATE, BOTH, INVALIDATE_ALL, RANGE, DEVICE = range(1, 9)
"""What the test kernel knows; DEVICE is a store at an offset of the peripherals."""
IMAGES = {
    "pi2": ("kernel7.img", "kernels/caches.img"),
    "pi3": ("kernel8.img", "kernels64/caches.img"),
    "zero": ("kernel.img", "kernels/caches_zero.img"),
}
MAILBOX, V3D, DMA = 0xB8A0, 0xC00000, 0x7000
RED, GREEN = 0xFF0000FF, 0xFF00FF00
Step = tuple[int, int, int]
Run = Callable[..., Machine]


@pytest.fixture(params=list(IMAGES))
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Run:
    """`run(mode, script, prepare)` on each kind of core."""

    def make(
        mode: str | None, script: list[Step], prepare: Callable[[Machine], None] | None = None, **options: Any
    ) -> Machine:
        name, image = IMAGES[request.param]
        (tmp_path / name).write_bytes((HERE / image).read_bytes())
        options |= {"board": request.param, "serial": SerialPort(), "caches": mode}
        machine = Machine(tmp_path, **options)
        machine.mailbox.at_once = True  # a script does not wait for replies
        base = machine.board.peripherals
        steps = [(STORE, base + at, v) if what == DEVICE else (what, at, v) for what, at, v in script]
        machine.memory.write(SCRIPT, b"".join(struct.pack("<3I", *step) for step in steps))
        if prepare is not None:
            prepare(machine)
        assert machine.run(seconds=1).reason is Stop.HALTED
        return machine

    return make


def store(address: int, value: int) -> list[Step]:
    """Steps that write a line which is in the cache then, whatever the core."""
    return [(LOAD, address, 0), (STORE, address, value)]


def found(machine: Machine, code: str) -> str:
    """The only message of a code."""
    items = [item for item in machine.reporter.items if item.code == code]
    assert len(items) == 1, machine.reporter.summary()
    return items[0].message


# -- the V3D ------------------------------------------------------------

COLOUR = CACHED + 1
"""Where the clear colour of the list is."""
POWER: list[Step] = [(DEVICE, MAILBOX, MESSAGE | 8)]
ALIAS = 0x40000000


def one_tile(machine: Machine) -> None:
    """A rendering list at CACHED that clears a surface to red, and the message for power."""
    machine.memory.write(MESSAGE, struct.pack("<7I", 28, 0, 0x30012, 4, 4, 1, 0))
    data = build(114, colour=RED, colour_high=RED) + build(
        113, address=SURFACE | ALIAS, width=64, height=64, format=1
    )
    data += build(115) + build(28) + build(115) + build(25)
    machine.memory.write(CACHED, data)
    machine.memory.write(CACHED + 0x100, data)


def render(at: int = CACHED) -> list[Step]:
    """Start the list."""
    size = len(build(114) + build(113) + 2 * build(115) + build(28) + build(25))
    start = at | ALIAS
    return [(DEVICE, V3D + 0x114, start), (DEVICE, V3D + 0x10C, start + size)]


REPAINT: list[Step] = [(LOAD, CACHED, 0), (STORE, COLOUR, GREEN), (STORE, COLOUR + 4, GREEN)]
"""An ARM1176 takes a line into its cache only when it is read."""


def test_without_the_option_nothing_is_modelled(run: Run) -> None:
    machine = run(None, [*POWER, *REPAINT, *render()], one_tile)
    assert machine.caches is None
    assert machine.memory.u32(SURFACE) == GREEN
    assert [item.code for item in machine.reporter.items] == ["SOC-093"]


@pytest.mark.parametrize(("mode", "picture"), [("check", GREEN), ("stale", RED)])
def test_a_list_that_was_not_cleaned(run: Run, mode: str, picture: int) -> None:
    machine = run(mode, [*POWER, *REPAINT, *render()], one_tile)
    text = found(machine, "CACHE-001")
    assert "the V3D reads a control list at 0x40200000" in text
    assert "1 of its" in text
    writer = int(text.rsplit("0x", 1)[1], 16)
    word = machine.memory.u32(writer)
    assert word in (0xE5812000, 0xB9000022), "the store itself: str r2, [r1] or str w2, [x1]"
    assert machine.memory.u32(SURFACE) == picture
    assert machine.memory.u32(COLOUR) == GREEN, "the CPU sees what it wrote"


@pytest.mark.parametrize("mode", ["check", "stale"])
def test_a_list_that_was_cleaned(run: Run, mode: str) -> None:
    machine = run(mode, [*POWER, *REPAINT, (CLEAN, CACHED, 0), *render()], one_tile)
    assert not machine.reporter.items, machine.reporter.summary()
    assert machine.memory.u32(SURFACE) == GREEN


@pytest.mark.parametrize(("mode", "seen"), [("check", RED), ("stale", 0)])
def test_the_picture_read_from_an_old_line(run: Run, mode: str, seen: int) -> None:
    machine = run(mode, [*POWER, (LOAD, SURFACE, 0), *render(), (LOAD, SURFACE, 0)], one_tile)
    assert f"0x{SURFACE:08x}, which the V3D has written since" in found(machine, "CACHE-002")
    assert machine.cpu.register(9) == seen


@pytest.mark.parametrize("mode", ["check", "stale"])
def test_the_picture_read_after_invalidating(run: Run, mode: str) -> None:
    script = [*POWER, (LOAD, SURFACE, 0), *render(), (INVALIDATE, SURFACE, 0), (LOAD, SURFACE, 0)]
    machine = run(mode, script, one_tile)
    codes = {item.code for item in machine.reporter.items}
    assert codes == {"SOC-114"}, "it does not wait for the frame"
    assert machine.cpu.register(9) == RED


@pytest.mark.parametrize("walk", ["cached", "past the cache"])
def test_a_table_that_only_the_cache_has(run: Run, walk: str) -> None:
    """The walk looks into the cache if TTBR0 or TCR says so, on an ARM1176 never."""
    machine = run("check", store(CACHED, 0))
    core = machine.caches.cores[0]
    inner = walk == "cached"
    names = ("SCTLR", "TTBR0", "TTBR1", "TTBCR", "PRRR", "NMRR", "TCR", "MAIR")
    registers = dict.fromkeys(names, 0) | {"SCTLR": 5, "TCR": inner << 8 | 25}
    registers["TTBR0"] = CACHED | (0 if core._cpu.WIDE else inner << 6)
    core.look_at_tables(registers)
    if inner and machine.board.name != "zero":
        assert not machine.reporter.items
    else:
        assert "the MMU reads a translation table at 0x00200000" in found(machine, "CACHE-001")


def test_the_cpu_and_the_v3d_write_one_line(run: Run) -> None:
    machine = run("stale", [*POWER, *store(SURFACE, 7), *render(), (CLEAN, SURFACE, 0)], one_tile)
    assert "the V3D writes 1 lines" in found(machine, "CACHE-005")
    size = machine.caches.data.lines.size
    assert machine.memory.u32(SURFACE) == 7
    assert machine.memory.u32(SURFACE + size - 4) == 0, "the rest of the line is the CPU's, too"
    assert machine.memory.u32(SURFACE + size) == RED


def test_invalidating_what_was_written(run: Run) -> None:
    machine = run("stale", [*store(CACHED, 5), (INVALIDATE, CACHED, 0), (LOAD, CACHED, 0)])
    assert "and is lost" in found(machine, "CACHE-003")
    assert machine.cpu.register(9) == 0
    machine = run("check", [*store(CACHED, 5), (INVALIDATE, CACHED, 0), (LOAD, CACHED, 0)])
    assert machine.cpu.register(9) == 5
    assert machine.reporter.has("CACHE-003")
    machine = run("stale", [*store(CACHED, 5), (BOTH, CACHED, 0), (LOAD, CACHED, 0)])
    assert machine.cpu.register(9) == 5
    assert not machine.reporter.items


@pytest.mark.parametrize("run", ["pi2", "zero"], indirect=True)
def test_invalidating_all_by_set_and_way(run: Run) -> None:
    script = [*store(CACHED, 5), *store(CACHED + 4096, 5), (INVALIDATE_ALL, 0, 0), (LOAD, CACHED, 0)]
    machine = run("stale", script)
    assert "and 1 more lines" in found(machine, "CACHE-003")
    assert machine.cpu.register(9) == 0


@pytest.mark.parametrize("run", ["zero"], indirect=True)
def test_an_arm1176_allocates_no_lines_for_stores(run: Run) -> None:
    machine = run("stale", [*POWER, *REPAINT[1:], *render()], one_tile)
    assert not machine.reporter.items, machine.reporter.summary()
    assert machine.memory.u32(SURFACE) == GREEN


def test_a_store_at_the_end_of_a_line_changes_that_line_only(run: Run) -> None:
    machine = run("check", store(CACHED + 252, 5))
    data = machine.caches.data
    first, last = data.line(CACHED), data.line(CACHED + 252)
    assert data.line(CACHED + 256) == last + 1
    dirty = [n for n in range(first, last + 9) if data.lines.flags[n] & DIRTY]
    assert dirty == [last]


@pytest.mark.parametrize("run", ["zero"], indirect=True)
def test_a_range_of_an_arm1176(run: Run) -> None:
    stores = [step for n in range(130) for step in store(CACHED + 32 * n, 5)]
    clean = (RANGE, CACHED + 0x60, CACHED + 128 * 32)
    machine = run("check", [*stores, clean, *POWER, *render()], one_tile)
    flags = machine.caches.data.lines.flags[machine.caches.data.line(CACHED) :]
    dirty = [n for n in range(131) if flags[n] & DIRTY]
    assert dirty == [0, 1, 2, 129]


def test_far_more_lines_than_a_cache_has(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vc4lab.soc.caches.data_cache.MAX_LINES", 4)
    touched: list[Step] = [(LOAD, CACHED + 0x1000 * n, 0) for n in range(6)]
    machine = run("check", [*touched, *store(CACHED + 0x8000, 1), *POWER], one_tile)
    lines = machine.caches.data.lines
    left = lines.marked(0xF)
    assert [int(n) << lines.shift for n in left] == [CACHED + 0x8000]
    written = [step for n in range(6) for step in store(CACHED + 0x1000 * n, 1)]
    machine = run("stale", [*written, *POWER, (LOAD, CACHED, 0)], one_tile)
    assert len(machine.caches.data.lines.marked(0xF)) == 1
    assert machine.cpu.register(9) == 1


# -- firmware, DMA, display ------------------------------------------------------------


def board_revision(machine: Machine) -> None:
    machine.memory.write(CACHED, struct.pack("<7I", 28, 0, 0x10002, 4, 0, 0, 0))


def test_a_mailbox_message_that_was_not_cleaned(run: Run) -> None:
    """The tag is only in the cache: the firmware sees another one."""
    script = [*store(CACHED + 8, 0x10001), (DEVICE, MAILBOX, CACHED | 8), (LOAD, CACHED + 20, 0)]
    machine = run("stale", script, board_revision)
    assert "the firmware reads a mailbox message" in found(machine, "CACHE-001")
    assert "which the firmware has written since" in found(machine, "CACHE-002")
    assert machine.cpu.register(9) == 0, "the answer is in memory, an old line in the cache"
    line = machine.caches.data.line(CACHED)
    shadow = machine.caches.data.lines.shadow[line].tobytes()
    assert int.from_bytes(shadow[20:24], "little") == machine.board.revision


def test_a_mailbox_message_as_it_should_be(run: Run) -> None:
    script = [
        *store(CACHED + 8, 0x10002),
        (BOTH, CACHED, 0),
        (DEVICE, MAILBOX, CACHED | 8),
        (LOAD, CACHED + 20, 0),
    ]
    machine = run("stale", script, board_revision)
    assert not machine.reporter.items, machine.reporter.summary()
    assert machine.cpu.register(9) == machine.board.revision


def copy_block(machine: Machine) -> None:
    block = struct.pack("<8I", 1 << 4 | 1 << 8, CACHED | ALIAS, SURFACE | ALIAS, 64, 0, 0, 0, 0)
    machine.memory.write(MESSAGE, block)


COPY: list[Step] = [(DEVICE, DMA + 4, MESSAGE), (DEVICE, DMA, 1)]


def test_dma(run: Run) -> None:
    machine = run("stale", [*store(CACHED, 77), *COPY], copy_block)
    assert "the DMA reads its source at 0x40200000" in found(machine, "CACHE-001")
    assert machine.memory.u32(SURFACE) == 0
    machine = run("stale", [*store(CACHED, 77), (CLEAN, CACHED, 0), *COPY], copy_block)
    assert machine.memory.u32(SURFACE) == 77
    assert not machine.reporter.items


def framebuffer(machine: Machine) -> None:
    words = (17 * 4, 0, 0x48003, 8, 8, 64, 32, 0x48005, 4, 4, 32, 0x40001, 8, 4, 4096, 0, 0)
    machine.memory.write(MESSAGE, struct.pack("<17I", *words))


@pytest.mark.parametrize("run", ["pi2"], indirect=True)
@pytest.mark.parametrize(("mode", "pixel"), [("check", (2, 2, 2)), ("stale", (0, 0, 0))])
def test_the_display(run: Run, mode: str, pixel: tuple[int, int, int]) -> None:
    machine = run(mode, [(DEVICE, MAILBOX, MESSAGE | 8)], framebuffer)
    place = machine.videocore.framebuffer.address
    script = [(DEVICE, MAILBOX, MESSAGE | 8), (STORE, place, 0x020202)]
    machine = run(mode, script, framebuffer)
    image = machine.screen.image
    assert image is not None
    assert image.getpixel((0, 0)) == pixel
    assert "the display reads the framebuffer" in found(machine, "CACHE-001")


@pytest.mark.parametrize("run", ["zero"], indirect=True)
def test_past_the_l2_of_a_pi_zero(run: Run) -> None:
    script = [*POWER, *REPAINT, (CLEAN, CACHED, 0), *render(CACHED | 0xC0000000)]
    machine = run("check", script, one_tile)
    assert "past the VideoCore's L2" in found(machine, "CACHE-004")


@pytest.mark.parametrize("run", ["pi2"], indirect=True)
def test_a_uniform_that_points_to_a_dirty_buffer(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        one_tile(machine)
        code = "mov t0s, unif\nnop ; nop ; ldtmu0\nnop ; nop ; thrend\nnop\nnop\n"
        machine.memory.write(MESSAGE + 0x100, assemble(code).bytes)
        machine.memory.set_u32(MESSAGE + 0x200, 0xC0000000 | CACHED)

    start: list[Step] = [(DEVICE, V3D + 0x434, MESSAGE + 0x200), (DEVICE, V3D + 0x430, MESSAGE + 0x100)]
    machine = run("check", [*POWER, (STORE, CACHED, 1), *start], prepare)
    assert "memory that its uniform 0 points to" in found(machine, "CACHE-001")


def test_a_mode_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "kernel7.img").write_bytes((HERE / "kernels" / "caches.img").read_bytes())
    with pytest.raises(ValueError, match="check or stale"):
        Machine(tmp_path, caches="writeback")


# -- the V3D's caches ------------------------------------------------------------


def test_uniforms_changed_between_jobs(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        one_tile(machine)
        code = "mov -, unif\nnop ; nop ; thrend\nnop\nnop\n"
        machine.memory.write(MESSAGE + 0x100, assemble(code).bytes)

    start: list[Step] = [
        (DEVICE, V3D + 0x434, 0x40000000 | MESSAGE + 0x200),
        (DEVICE, V3D + 0x430, 0x40000000 | MESSAGE + 0x100),
    ]
    change = (STORE, MESSAGE + 0x200, 5)
    clear: list[Step] = [(DEVICE, V3D + 0x20, 4), (DEVICE, V3D + 0x24, 0x0F0F0F0F)]
    machine = run("check", [*POWER, *start, change, *start], prepare)
    assert "SLCACTL needs 0x00000f00" in found(machine, "CACHE-006")
    machine = run("check", [*POWER, *start, change, *clear, *start], prepare)
    assert not machine.reporter.items, machine.reporter.summary()


@pytest.mark.parametrize(("choice", "told"), [("enabled", True), ("disabled", False)])
def test_whether_the_l2_is_on_at_first(run: Run, choice: str, told: bool) -> None:
    """The slices' caches are cleared, the L2 is not."""

    def prepare(machine: Machine) -> None:
        one_tile(machine)
        code = "mov -, unif\nnop ; nop ; thrend\nnop\nnop\n"
        machine.memory.write(MESSAGE + 0x100, assemble(code).bytes)

    start: list[Step] = [(DEVICE, V3D + 0x434, MESSAGE + 0x200), (DEVICE, V3D + 0x430, MESSAGE + 0x100)]
    change: list[Step] = [(STORE, MESSAGE + 0x200, 5), (DEVICE, V3D + 0x24, 0x0F0F0F0F)]
    unknowns = DEFAULT_UNKNOWNS.with_(l2c_at_power_on=choice)
    machine = run("check", [*POWER, *start, *change, *start], prepare, unknowns=unknowns)
    assert machine.reporter.has("CACHE-006") == told


# -- hostile programs ------------------------------------------------------------


@pytest.mark.parametrize("mode", ["check", "stale"])
def test_random_code_with_caches_ends(run: Run, mode: str) -> None:
    import random

    for seed in range(3):
        noise = random.Random(seed)
        places = [CACHED, CACHED + 64, SURFACE, MESSAGE, 0x40000000, 0xFFFFFFC0, 0x7FFFFFFC]
        script = [
            (noise.choice((STORE, LOAD, CLEAN, INVALIDATE, BOTH)), noise.choice(places[:4]), seed)
            for _ in range(200)
        ]
        script += [(CLEAN, place, 0) for place in places[:4]]
        jobs = [(DEVICE, V3D + at, noise.getrandbits(32)) for at in (0x110, 0x108, 0x114, 0x10C, 0x430)]
        mailbox = [(DEVICE, MAILBOX, noise.choice(places) | noise.choice((1, 8)))]
        machine = run(mode, [*POWER, *script, *jobs, *mailbox, *script], one_tile)
        assert machine.ended


# -- without a model -----------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "hints"), [(None, 1), ("check", 0), ("stale", 0)])
def test_a_cache_without_a_model_is_said_once(run: Run, mode: str | None, hints: int) -> None:
    def prepare(machine: Machine) -> None:
        machine.memory.write(MESSAGE, struct.pack("<3I", 12, 0, 0))
        machine.bus.write(MAILBOX, 4, MESSAGE | 8)

    machine = run(mode, [], prepare)
    machine.run(seconds=0.1)
    assert machine.reporter.counts["SOC-093"] == hints
    if hints:
        assert "--caches check" in found(machine, "SOC-093")


def test_who_has_no_company_needs_no_hint(run: Run) -> None:
    assert not run(None, []).reporter.has("SOC-093"), "only the CPU reads what it writes"


def test_who_has_no_cache_on_needs_no_hint(boot: Callable[..., Machine]) -> None:
    machine = boot("framebuffer")
    machine.run()
    assert not machine.reporter.has("SOC-093")


@pytest.mark.parametrize(("control", "cached"), [(0, False), (1, False), (4, False), (5, True)])
def test_without_the_mmu_no_data_is_cached(boot: Callable[..., Machine], control: int, cached: bool):
    """SCTLR.C alone (bit 2, without M, bit 0) does nothing, so there is nothing to hint at."""
    cpu = boot("framebuffer").cpu
    core = type("Core", (type(cpu),), {"system_control": control})
    half = core.__new__(core)
    half.__dict__.update(cpu.__dict__)
    half.system_register = lambda key: control  # type: ignore[method-assign]
    assert half.sets_data_cache is cached


def test_a_program_that_does_not_end_gets_its_hint(
    boot: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked for at every eighth vsync, and at the end of the run."""
    base = find_board("pi2").peripherals
    words = (  # writes to GPSET0 for ever, with pauses
        0xE59F0010, 0xE5801000, 0xE3A02801, 0xE2522001, 0x1AFFFFFD, 0xEAFFFFFA, base + 0x20001C,
    )  # fmt: skip
    machine = boot(struct.pack("<7I", *words))
    looks: list[int] = []
    monkeypatch.setattr(machine, "_look_at_caches", lambda: looks.append(machine.vsyncs))
    machine.run(seconds=0.3)
    assert looks == [8, 16, machine.vsyncs]
