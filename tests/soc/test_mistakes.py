"""Mistakes people really make, each by a guest program: what is said, where, by which function."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.elf import make_elf
from tests.support.jobs import nv_vertex

from vc4lab.diagnostics import Reporter, StrictStop, catalogue, explain
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.soc.address.open_bus import why_nothing
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, RunResult

KERNELS = Path(__file__).parent / "kernels"
SCRIPT, MESSAGE, DATA, SURFACE = 0x100000, 0x180000, 0x200000, 0x400000
STORE, LOAD, SLEEP, DEVICE, DEVICE_LOAD, DEVICE_WAIT = 1, 2, 4, 11, 12, 13
"""Steps of the script; those of a DEVICE name an offset of the peripherals."""
MAILBOX, V3D = 0xB8A0, 0xC00000
SYMBOLS = {"_start": (0x8000, 8), "next": (0x8008, 44), "put": (0x8034, 8), "get": (0x803C, 8)}
Step = tuple[int, int, int]
Run = Callable[..., Machine]


@pytest.fixture
def card(tmp_path: Path) -> Callable[..., Path]:
    """A card with the script kernel, for a board, and the names of its functions."""

    def make(config: str = "") -> Path:
        for name, image in (("kernel7.img", "script"), ("kernel.img", "script_zero")):
            (tmp_path / name).write_bytes((KERNELS / f"{image}.img").read_bytes())
        image = (KERNELS / "script.img").read_bytes()
        (tmp_path / "kernel7.elf").write_bytes(make_elf(SYMBOLS, {0x8000: image}))
        (tmp_path / "config.txt").write_text(config)
        return tmp_path

    return make


@pytest.fixture
def run(card: Callable[..., Path]) -> Run:
    """`run(script, prepare)`: a machine that has run the script; `machine.result` says how."""

    def make(
        script: list[Step],
        prepare: Callable[[Machine], None] | None = None,
        config: str = "",
        **options: object,
    ) -> Machine:
        machine = Machine(card(config), serial=SerialPort(), **options)  # type: ignore[arg-type]
        machine.mailbox.at_once = True  # a script does not wait for replies
        base = machine.board.peripherals
        steps = [
            (what - 10, base + at, value) if what > 10 else (what, at, value) for what, at, value in script
        ]
        machine.memory.write(SCRIPT, b"".join(struct.pack("<3I", *step) for step in steps))
        machine.memory.write(MESSAGE, struct.pack("<7I", 28, 0, 0x30012, 4, 4, 1, 0))
        if prepare is not None:
            prepare(machine)
        machine.result = machine.run()  # type: ignore[attr-defined]
        return machine

    return make


def found(machine: Machine, code: str) -> str:
    """The only message of a code, as it is printed."""
    items = [item for item in machine.reporter.items if item.code == code]
    assert len(items) == 1, machine.reporter.summary()
    assert catalogue()[code].cure in explain(code)
    return str(items[0])


POWER: list[Step] = [(DEVICE, MAILBOX, MESSAGE | 8)]


# -- 1: power ----------------------------------------------------------------------------------


def test_used_before_it_has_power(run: Run) -> None:
    machine = run([(DEVICE_LOAD, V3D, 0), (DEVICE, V3D + 0x110, 4), *POWER, (DEVICE_LOAD, V3D, 0)])
    text = found(machine, "SOC-030")
    assert "at 0x7ec00000: v3d.IDENT0 is read before the V3D has power and clock" in text
    assert "<get>" in text
    assert machine.cpu.register(9) == 0x02443356


def test_used_after_power_was_taken_away(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        for at, on in ((0, 1), (0x40, 0)):
            message = struct.pack("<8I", 32, 0, 0x38030, 8, 8, 11, on, 0)
            machine.memory.write(MESSAGE + at, message)

    off = (DEVICE, MAILBOX, MESSAGE + 0x40 | 8)
    machine = run([*POWER, (DEVICE_LOAD, V3D, 0), off, (DEVICE, V3D + 0x108, 4)], prepare)
    text = found(machine, "SOC-030")
    assert "v3d.CT0EA is written (0x00000004) after its power domain was switched off" in text


# -- 2: addresses ------------------------------------------------------------------------------


def test_bus_addresses_used_by_the_arm(run: Run) -> None:
    machine = run([(STORE, 0xFC000000, 1)])
    assert "the RAM is at 0x3c000000" in found(machine, "SOC-003")
    machine = run([(STORE, 0x7E200020, 1)])
    text = found(machine, "SOC-003")
    assert "the ARM's peripherals are at 0x3f000000" in text
    assert "<put" in text


def test_the_peripherals_of_another_board(run: Run) -> None:
    machine = run([(LOAD, 0x3F201000, 1)], board="zero")
    assert "where a Pi 2 or 3 has its peripherals" in found(machine, "SOC-002")
    machine = run([(STORE, 0x20201000, 1)], board="pi2")
    assert "0x20201000, which is RAM here" in found(machine, "SOC-087")
    assert not run([(STORE, 0x20301000, 1)], board="pi2").reporter.items


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        (0x7E201000, "SOC-003", "this one at 0x20201000"),
        (0xC0000000, "SOC-003", "RAM is at 0x00000000"),
        (0xFE201000, "SOC-003", "where a Raspberry Pi 4 has its peripherals"),
        (0xFC201000, "SOC-003", "RAM is at 0x3c201000"),
        (0x3F000000, "SOC-002", "Pi 2 or 3"),
        (0x50000000, "SOC-002", "as a bus address"),
        (0x30000000, "SOC-002", ""),
    ],
)
def test_what_an_empty_address_may_mean(address: int, code: str, words: str) -> None:
    found_code, text = why_nothing(address, 0x20000000)
    assert found_code == code
    assert words in text


def test_list_registers_with_addresses_of_nothing(run: Run) -> None:
    start: list[Step] = [(DEVICE, V3D + 0x110, 0x7E000000), (DEVICE, V3D + 0x108, 0x7E000010)]
    machine = run([*POWER, *start])
    text = found(machine, "CLE-003")
    assert "a control list at 0x7e000000, where the device registers are" in text
    assert "<put>" in text


def test_a_framebuffer_structure_without_alias(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        machine.memory.write(DATA, struct.pack("<10I", 64, 32, 64, 32, 0, 16, 0, 0, 0, 0))

    machine = run([(DEVICE, MAILBOX, DATA | 1)], prepare)
    assert "add 0xc0000000" in found(machine, "SOC-080")
    assert not run([(DEVICE, MAILBOX, DATA | 1 | 0xC0000000)], prepare).reporter.has("SOC-080")


# -- 5: alignment ------------------------------------------------------------------------------


def test_an_unaligned_mailbox_message(run: Run) -> None:
    machine = run([(DEVICE, MAILBOX, MESSAGE + 4 | 8)])
    assert "mailbox channel 12" in found(machine, "SOC-010")


def test_a_message_written_to_the_mailbox_that_is_read(run: Run) -> None:
    """Mailbox 0 is 0x20 bytes before the one that messages are sent by."""
    machine = run([(DEVICE, MAILBOX - 0x20, MESSAGE | 8)])
    assert "written to mailbox 0" in found(machine, "SOC-010")
    assert machine.mailbox.messages == 0


# -- 7 and 8: who waits for what ---------------------------------------------------------------


def lists(machine: Machine) -> None:
    """A binning list at DATA with a grid of one tile, and a rendering list that waits after it."""
    state = {"state_address": 0xC0320000}
    binning = build(112, address=0xC0300000, memory_size=1 << 16, tiles_x=1, tiles_y=1, **state)
    machine.memory.write(DATA, binning + build(6) + build(4))
    machine.memory.write(DATA + 0x100, build(8))


def start(thread: int, at: int, size: int) -> list[Step]:
    place = at | 0xC0000000
    return [(DEVICE, V3D + 0x110 + 4 * thread, place), (DEVICE, V3D + 0x108 + 4 * thread, place + size)]


BIN, RENDER = start(0, DATA, 18), start(1, DATA + 0x100, 1)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([*BIN, (DEVICE_WAIT, V3D + 0x138, 1)], "no rendering list was started"),
        ([(DEVICE_WAIT, V3D + 0x134, 1)], "no binning list was started"),
        ([*BIN, (DEVICE_WAIT, V3D + 0x134, 2)], "it has counted to 1 (writing 1 clears it)"),
        ([*RENDER, (DEVICE_WAIT, V3D + 0x130, 1)], "RMACTIVE=1: rendering pipeline not empty"),
        ([*BIN, (DEVICE_WAIT, V3D + 0x030, 1)], "RFC counts ends of frame"),
        ([(DEVICE_WAIT, V3D + 0x43C, 1 << 16)], "0 user programs were requested"),
    ],
)
def test_waiting_for_the_wrong_counter(run: Run, script: list[Step], words: str) -> None:
    machine = run([*POWER, *script], lists)
    text = found(machine, "SOC-040")
    assert words in text
    assert "keeps reading v3d." in text


def test_binner_memory_runs_out(run: Run) -> None:
    """Too little tile memory, no overspill block, and a program that waits for the flush."""

    def prepare(machine: Machine) -> None:
        memory = machine.memory
        vertices = b"".join(
            nv_vertex(x, y, 0.5, 1.0) for k in range(400) for x, y in ((1, 1), (1 + k % 60, 60), (60, 2))
        )
        memory.write(SURFACE, vertices)
        code = assemble("nop ; nop ; thrend\nnop\nnop\n").bytes
        memory.write(MESSAGE + 0x100, code)
        record = struct.pack("<BBBBIII", 1, 12, 0, 0, MESSAGE + 0x100, 0, SURFACE)
        memory.write(MESSAGE + 0x200, record)
        data = build(112, address=DATA + 0x8000, memory_size=96, tiles_x=1, tiles_y=1)
        data += build(6) + bytes([96, 3, 0, 0]) + build(102, width=64, height=64) + build(103)
        data += build(65, address=MESSAGE + 0x200) + build(33, mode=4, length=1200) + build(4)
        memory.write(DATA, data.ljust(128, b"\x01"))

    begin: list[Step] = [(DEVICE, V3D + 0x110, DATA), (DEVICE, V3D + 0x108, DATA + 128)]
    machine = run([*POWER, *begin, (DEVICE_WAIT, V3D + 0x134, 1)], prepare)
    assert "no block in BPOS" in found(machine, "CLE-028")
    assert "waits for binner memory: BPOS (overspill block)" in found(machine, "SOC-040")
    machine = run([*POWER, *begin, (DEVICE_WAIT, V3D + 0x130, 1 << 20)], prepare)
    assert "BMOOM=1: binner out of memory" in found(machine, "SOC-040")


def test_sleeping_for_an_interrupt_of_the_v3d(run: Run) -> None:
    """The line is enabled in the interrupt controller, but not in the V3D, and nothing runs."""
    line = (DEVICE, 0xB210, 1 << 10)
    text = found(run([*POWER, *BIN, line, (SLEEP, 0, 0)], lists), "SOC-040")
    assert "sleeps" in text
    assert "no rendering list was started" in text
    assert "no interrupt of the V3D is enabled (INTENA = 0)" in text


def test_a_semaphore_nobody_increments(run: Run) -> None:
    machine = run([*POWER, *BIN, *RENDER, (DEVICE_WAIT, V3D + 0x138, 1)], lists)
    assert "the binning list has ended without a record 7" in found(machine, "CLE-022")
    assert "the rendering thread (CT1CA = 0xc0200101) waits for record 8" in found(machine, "SOC-040")


# -- 19: the picture ---------------------------------------------------------------------------


def framebuffer(width: int, height: int, depth: int, order: int | None = None) -> Callable[..., None]:
    """A message that allocates a framebuffer."""

    def prepare(machine: Machine) -> None:
        tags = struct.pack("<5I", 0x48003, 8, 8, width, height) + struct.pack("<4I", 0x48005, 4, 4, depth)
        if order is not None:
            tags += struct.pack("<4I", 0x48006, 4, 4, order)
        tags += struct.pack("<5I", 0x40001, 8, 4, 4096, 0) + bytes(4)
        machine.memory.write(MESSAGE, struct.pack("<2I", 8 + len(tags), 0) + tags)

    return prepare


def place_of(run: Run, prepare: Callable[..., None], **options: object) -> int:
    """Where the framebuffer will be."""
    address = run(POWER, prepare, **options).videocore.framebuffer.address
    assert address
    return address


def test_lines_that_ignore_the_pitch(run: Run) -> None:
    prepare = framebuffer(10, 8, 16)
    place = place_of(run, prepare)
    packed: list[Step] = [(STORE, place + 4 * n, 0xFFFFFFFF) for n in range(40)]
    text = found(run([*POWER, *packed], prepare), "SOC-083")
    assert "a row of the picture has 20 bytes and rows are 32 bytes apart" in text
    assert f"at 0x{place + 20:08x}" in text
    right: list[Step] = [(STORE, place + 32 * y + 4 * x, 1) for y in range(8) for x in range(5)]
    assert not run([*POWER, *right], prepare).reporter.items


@pytest.mark.parametrize(("order", "pixel", "told"), [(None, 0xFF, 1), (1, 0xFF, 0), (None, 0xFF00, 0)])
def test_a_pixel_order_that_was_not_chosen(run: Run, order: int | None, pixel: int, told: int) -> None:
    prepare = framebuffer(16, 8, 32, order)
    place = place_of(run, prepare)
    machine = run([*POWER, (STORE, place, pixel)], prepare)
    assert machine.reporter.counts["SOC-084"] == told
    if told:
        colour = "red" if machine.videocore.framebuffer.geometry.order else "blue"
        assert f"byte 0 of a pixel is {colour} here" in found(machine, "SOC-084")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ({"width": 32, "height": 8, "format": 1}, None),
        ({"width": 32, "height": 8, "format": 2}, "it stores 16 bits per pixel"),
        ({"width": 28, "height": 8, "format": 1}, "its rows are 112 bytes apart, the framebuffer's 128"),
        ({"width": 32, "height": 8, "format": 1, "tiling": 1}, "it stores tiles"),
        ({"width": 32, "height": 9, "format": 1}, "extend past the framebuffer's end"),
    ],
)
def test_a_v3d_frame_that_does_not_fit_the_framebuffer(
    run: Run, mode: dict[str, int], words: str | None
) -> None:
    allocate = framebuffer(32, 8, 32, 1)
    place = place_of(run, allocate)

    def prepare(machine: Machine) -> None:
        allocate(machine)
        machine.memory.write(MESSAGE + 0x100, struct.pack("<7I", 28, 0, 0x30012, 4, 4, 1, 0))
        data = build(113, address=place | 0xC0000000, **mode) + build(115) + build(25)
        machine.memory.write(DATA, data)

    power = (DEVICE, MAILBOX, MESSAGE + 0x100 | 8)
    size = len(build(113) + build(115) + build(25))
    machine = run([*POWER, power, *start(1, DATA, size)], prepare)
    if words is None:
        assert not machine.reporter.items, machine.reporter.summary()
    else:
        assert words in found(machine, "SOC-085")


# -- 26: performance counters ------------------------------------------------------------------


def test_counters_without_their_global_enable(run: Run) -> None:
    machine = run([*POWER, (DEVICE, V3D + 0x684, 1), (DEVICE, V3D + 0x674, 1)])
    text = found(machine, "CLE-037")
    assert "PCTRE = 0x00000001 enables counters, but bit 31 is not set" in text
    assert "<put>" in text
    assert not run([*POWER, (DEVICE, V3D + 0x684, 1), (DEVICE, V3D + 0x674, 1 << 31 | 1)]).reporter.items


# -- 27: guard zones ---------------------------------------------------------------------------


def strict() -> Reporter:
    return Reporter(strict=True)


@pytest.mark.parametrize("distance", [0, 60, 4095])
def test_the_cpu_overruns_the_framebuffer(run: Run, distance: int) -> None:
    prepare = framebuffer(16, 8, 16)
    place = place_of(run, prepare, reporter=strict())
    beyond = place + 32 * 8 + distance & ~3
    with pytest.raises(StrictStop) as stop:
        run([*POWER, (STORE, beyond, 1)], prepare, reporter=strict())
    text = str(stop.value.diagnostic)
    assert "SOC-086" in text
    assert f"the CPU writes {beyond - place - 256} bytes past the end of the framebuffer" in text
    assert "<put>" in text
    run([*POWER, (STORE, place + 32 * 8 - 4, 1)], prepare, reporter=strict())


def test_the_v3d_overruns_allocated_memory(run: Run) -> None:
    allocate = struct.pack("<9I", 36, 0, 0x3000C, 12, 12, 4096, 4096, 4, 0)
    place = 0

    def prepare(machine: Machine) -> None:
        machine.memory.write(MESSAGE + 0x100, allocate)
        data = build(114, colour=7, colour_high=7)
        data += build(113, address=place | 0xC0000000, width=32, height=33, format=1)
        data += build(115) + build(28) + build(115) + build(25)
        machine.memory.write(DATA, data)

    first = (DEVICE, MAILBOX, MESSAGE + 0x100 | 8)
    machine = run([*POWER, first], prepare, reporter=strict())
    place = machine.videocore.pool.blocks[1].address
    with pytest.raises(StrictStop) as stop:
        run([*POWER, first, *start(1, DATA, 39)], prepare, reporter=strict())
    text = str(stop.value.diagnostic)
    assert "the V3D has written 0 bytes past the end of VideoCore memory 1" in text


def test_neighbours_have_their_zones_and_give_them_back(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        for number in range(3):
            words = (36, 0, 0x3000C, 12, 12, 100, 16, 4, 0)
            machine.memory.write(MESSAGE + 64 * number, struct.pack("<9I", *words))
        release = struct.pack("<7I", 28, 0, 0x3000F, 4, 4, 2, 0)
        machine.memory.write(MESSAGE + 0x100, release)

    script = [(DEVICE, MAILBOX, MESSAGE + 64 * n | 8) for n in (0, 1, 2, 4)]
    machine = run(script, prepare, reporter=strict())
    blocks = machine.videocore.pool.blocks
    assert sorted(blocks) == [1, 3]
    assert blocks[3].address - blocks[1].address >= 2 * 4096
    end = blocks[1].address + 100
    assert machine.memory.view(end, 4096) == b"\xa5" * 4096
    plain = run(script, prepare)
    blocks = plain.videocore.pool.blocks
    assert blocks[3].address - blocks[1].address < 4096, "without --strict there are no zones"


# -- 30: who owns the V3D ----------------------------------------------------------------------


def test_the_firmware_starts_programs_beside_ours(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        lists(machine)
        machine.memory.write(MESSAGE + 0x100, assemble("nop ; nop ; thrend\nnop\nnop\n").bytes)
        machine.memory.write(MESSAGE + 0x200, struct.pack("<2I", 0, 0xC0000000 | MESSAGE + 0x100))
        words = (40, 0, 0x30011, 16, 16, 1, MESSAGE + 0x200, 0, 1000, 0)
        machine.memory.write(MESSAGE + 0x40, struct.pack("<10I", *words))

    execute = (DEVICE, MAILBOX, MESSAGE + 0x40 | 8)
    machine = run([*POWER, *RENDER, execute], prepare)
    assert "waits for record 8" in found(machine, "SOC-081")
    assert not run([*POWER, *BIN, execute], prepare).reporter.items


def test_vchiq_and_the_v3d(run: Run) -> None:
    def prepare(machine: Machine) -> None:
        machine.memory.write(MESSAGE + 0x40, struct.pack("<7I", 28, 0, 0x48010, 4, 4, DATA, 0))

    machine = run([*POWER, (DEVICE, MAILBOX, MESSAGE + 0x40 | 8)], prepare)
    assert "VCHIQ" in found(machine, "SOC-081")


def test_gpu_mem(run: Run) -> None:
    assert "gpu_mem=16" in found(run(POWER, config="gpu_mem=16\n"), "SOC-082")
    assert not run(POWER, config="gpu_mem=32\n").reporter.items

    def prepare(machine: Machine) -> None:
        machine.memory.write(MESSAGE, struct.pack("<9I", 36, 0, 0x3000C, 12, 12, 17 << 20, 4096, 4, 0))

    assert "gpu_mem=16" in found(run(POWER, prepare, config="gpu_mem=16\n"), "SOC-023")


def test_a_result_is_there(run: Run) -> None:
    assert isinstance(run([]).result, RunResult)  # type: ignore[attr-defined]
