"""Saved states: a program goes on as if nothing had happened; files of strangers do no harm."""

import json
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.soc.conftest import KERNELS, CountingV3D

from vc4lab.soc.address.polling import PollState
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.states.state import StateError, load_state, save_state
from vc4lab.soc.states.state_cpu64 import PSTATE, is_sane, restore_cpu, snapshot_cpu
from vc4lab.soc.states.state_ram import LOCAL_HEADER, MAGIC, PAGE
from vc4lab.soc.states.state_table import rows

EXAMPLES = Path(__file__).parents[3] / "examples"


def summary(machine: Machine, result) -> tuple[object, ...]:
    image = machine.screen.image
    cores = tuple(cpu.state() for cpu in machine.cores)
    return (
        image.tobytes() if image else b"", machine.uart.text, cores, result.reason, result.frames,
        machine.counter.count, machine.clock.now,
    )  # fmt: skip


def test_naan_goes_on_with_the_same_picture(tmp_path):
    card = EXAMPLES / "naan" / "sdcard"
    first = Machine(card)
    first.run(frames=3)
    save_state(first, tmp_path / "state")
    expected = summary(first, first.run(frames=3))
    second = Machine(card)
    load_state(second, tmp_path / "state")
    assert second.frames.count == 3
    assert summary(second, second.run(frames=3)) == expected


@pytest.mark.parametrize(
    ("kernel", "config", "seconds"),
    [("vsync", "fake_vsync_isr=1", 0.02), ("irq", "", 0.0025), ("wait", "", 0.05),
     ("memory_irq", "", 0.001), ("svc", "", 1e-7), ("framebuffer", "", 5e-5),
     ("multicore", "", 0.0005), ("core_irq", "", 0.002)],
)  # fmt: skip
def test_programs_go_on(boot, tmp_path, kernel, config, seconds):
    forgiving = kernel == "multicore"  # it uses ldrex without a cache
    first = boot(kernel, config, forgiving=forgiving)
    first.run(seconds=seconds)
    save_state(first, tmp_path / "state")
    expected = summary(first, first.run(seconds=0.1))
    second = boot(kernel, config, forgiving=forgiving)
    load_state(second, tmp_path / "state")
    assert summary(second, second.run(seconds=0.1)) == expected


def test_a_chosen_pixel_order_stays_chosen(tmp_path):
    """Otherwise palettes change their colours, and SOC-084 appears (`display_lint.py`)."""
    card = EXAMPLES / "triangle" / "sdcard"
    first = Machine(card)
    first.run(seconds=0.0046)
    assert first.videocore.framebuffer.order_told
    save_state(first, tmp_path / "state")
    second = Machine(card)
    load_state(second, tmp_path / "state")
    assert second.videocore.framebuffer.order_told
    second.run(frames=1)
    assert "SOC-084" not in {item.code for item in second.reporter.items}


@pytest.mark.parametrize("in_place", [False, True])
def test_ram_that_is_not_packed(tmp_path, in_place):
    card = EXAMPLES / "naan" / "sdcard"
    first = Machine(card)
    first.run(frames=2)
    path = tmp_path / "state"
    save_state(first, path, packed=False)
    kept = path.read_bytes()
    expected = summary(first, first.run(frames=2))
    second = Machine(card)
    load_state(second, path, in_place=in_place)
    path.unlink()
    assert summary(second, second.run(frames=2)) == expected
    path.write_bytes(kept)
    third = Machine(card)
    third.memory.write(third.memory.ram_bytes - 4, b"rest")
    load_state(third, path, in_place=in_place)
    assert summary(third, third.run(frames=2)) == expected
    assert path.read_bytes() == kept


def test_ram_is_mapped_only_where_it_lies_whole_in_the_file(tmp_path):
    """Headers that lie about it are read as an archive, which finds the damage."""
    card = EXAMPLES / "naan" / "sdcard"
    first = Machine(card)
    path = tmp_path / "state"
    save_state(first, path, packed=False)
    raw = bytearray(path.read_bytes())
    at = raw.index(b"ram.bin") - LOCAL_HEADER.size
    assert raw[at : at + 4] == MAGIC
    for change in (b"XX\3\4", raw[at : at + 28] + b"\xff\xff"):
        damaged = bytes(raw[:at]) + bytes(change) + bytes(raw[at + len(change) :])
        path.write_bytes(damaged)
        with pytest.raises(StateError, match="damaged"):
            load_state(Machine(card), path, in_place=True)


@pytest.mark.parametrize(("packed", "in_place"), [(False, True), (False, False), (True, False)])
def test_a_changed_page_is_noticed(boot, tmp_path, packed, in_place):
    """Also where RAM is mapped and not read; and of pages that have changed places."""
    first = boot("framebuffer")
    first.run(frames=1)
    path = tmp_path / "state"
    save_state(first, path, packed=packed)
    with zipfile.ZipFile(path) as archive:
        pages = json.loads(archive.read("state.json"))["pages"]
        ram = archive.read("ram.bin")
    for change in ({7: 1}, {len(ram) - 1: 0x80}, {PAGE + 5: 4}):
        changed = bytearray(ram)
        for at, bits in change.items():
            changed[at] ^= bits
            page = pages[at // PAGE]
        _replace_ram(path, tmp_path / "changed", bytes(changed), packed)
        other = boot("framebuffer")
        with pytest.raises(StateError, match=f"damaged .*0x{page * PAGE:08x}"):
            load_state(other, tmp_path / "changed", in_place=in_place)
    swapped = ram[PAGE : 2 * PAGE] + ram[:PAGE] + ram[2 * PAGE :]
    _replace_ram(path, tmp_path / "changed", swapped, packed)
    with pytest.raises(StateError, match="damaged"):
        load_state(boot("framebuffer"), tmp_path / "changed", in_place=in_place)


def _replace_ram(path: Path, other: Path, ram: bytes, packed: bool) -> None:
    """The archive with other RAM, whose own sum is right."""
    with zipfile.ZipFile(path) as old:
        kept = {name: old.read(name) for name in ("state.json", "card.bin")}
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.json", kept["state.json"])
        archive.writestr("ram.bin", ram, None if packed else zipfile.ZIP_STORED)
        archive.writestr("card.bin", kept["card.bin"])


def test_a_byte_of_the_stored_file_is_noticed_before_ram_is_changed(boot, tmp_path):
    first = boot("framebuffer")
    first.run(frames=1)
    path = tmp_path / "state"
    save_state(first, path, packed=False)
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"ram.bin") + PAGE // 2] ^= 0x10
    path.write_bytes(bytes(raw))
    other = boot("framebuffer")
    before = other.memory.read(0, other.memory.ram_bytes)
    with pytest.raises(StateError, match="damaged"):
        load_state(other, path, in_place=True)
    assert other.memory.read(0, other.memory.ram_bytes) == before


@pytest.mark.parametrize("packed", [False, True])
def test_equal_machines_make_equal_files(boot, tmp_path, monkeypatch, packed):
    files = []
    for at in (1_000_000_000, 1_700_000_000):
        machine = boot("framebuffer")
        machine.run(frames=1)
        monkeypatch.setattr("time.time", lambda at=at: at)
        save_state(machine, tmp_path / f"{at}", packed=packed)
        files.append((tmp_path / f"{at}").read_bytes())
    assert files[0] == files[1]


@pytest.fixture(scope="module")
def state_of_a_frame(tmp_path_factory) -> bytes:
    """What is saved after the first frame of a kernel that draws."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "kernel7.img").write_bytes((KERNELS / "framebuffer.img").read_bytes())
    machine = Machine(folder, serial=SerialPort(), v3d_factory=CountingV3D)
    machine.run(frames=1)
    save_state(machine, folder / "state")
    return (folder / "state").read_bytes()


@pytest.fixture
def saved(state_of_a_frame, tmp_path):
    path = tmp_path / "state"
    path.write_bytes(state_of_a_frame)
    return path


def test_files_that_are_no_states(boot, tmp_path, saved):
    machine = boot("framebuffer")
    other = tmp_path / "other"
    for content in (b"", b"nothing", saved.read_bytes()[:-30], saved.read_bytes()[:500]):
        other.write_bytes(content)
        with pytest.raises(StateError):
            load_state(machine, other)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("../../etc/passwd", "x")
    with pytest.raises(StateError, match="not a saved state"):
        load_state(machine, other)
    with pytest.raises(StateError, match="another program"):
        load_state(boot("hello"), saved)
    with pytest.raises(FileNotFoundError):
        load_state(machine, tmp_path / "nothing")


def _changed(path: Path, other: Path, change) -> Path:
    with zipfile.ZipFile(path) as archive:
        state = json.loads(archive.read("state.json"))
        data = {name: archive.read(name) for name in ("ram.bin", "card.bin")}
    change(state)
    with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.json", json.dumps(state))
        for name, content in data.items():
            archive.writestr(name, content)
    return other


DO_NOT_FIT: tuple[tuple[list[str | int], object], ...] = (
    (["version"], 99),
    (["board"], "pi9"),
    (["pages"], [1 << 40]),
    (["pages"], ["x"]),
    (["checksums"], []),
    (["checksums"], None),
    (["checksums"], [1]),
    (["registers"], []),
    (["registers", 0, "r0"], "x"),
    (["tables", "clock", "skipped"], "x"),
    (["tables", "clock"], {}),
    (["tables", "irq", "values"], [[1, 2]]),
    (["display", "geometry", "width"], 10**9),
    (["display", "geometry", "size"], 1),
    (["display", "blocks", 0, "address"], 0),
    (["display", "shown"], 77),
    (["supplies"], ["mains"]),
    (["timers"], [[[0], [0]]] * 4),
    (["instructions"], -1),
    (["scheduler"], []),
    (["scheduler", 0, "polls"], "00"),
    (["scheduler", 0, "polls"], 5),
    (["polls"], "ff" * PollState.size),
    (["polls"], None),
    (["scheduler", 0, "places"], [["x", []]]),
    (["card", "written"], [1]),
    (["card", "erased"], [[5]]),
    (["card", "erased"], [[5, 9], [7, 12]]),
    (["card", "erased"], [[0, 1 << 40]]),
    (["card", "erased"], [["x", 1]]),
    (["card"], None),
    (["events"], []),
)
"""Places in a saved state, and what cannot stand there."""


def test_states_that_do_not_fit(boot, tmp_path, saved):
    """Each is refused, and the machine that refused it goes on."""
    machine = boot("framebuffer")
    wrong = []
    for path, value in DO_NOT_FIT:

        def change(state, path=path, value=value) -> None:
            for key in path[:-1]:
                state = state[key]
            state[path[-1]] = value

        before = summary(machine, machine.run(seconds=0))
        try:
            load_state(machine, _changed(saved, tmp_path / "other", change))
            wrong.append(f"{path} = {value!r} is taken")
        except StateError:
            if summary(machine, machine.run(seconds=0)) != before:
                wrong.append(f"{path} = {value!r} has changed the machine")
            if machine.run(frames=1).frames != 1:
                wrong.append(f"{path} = {value!r} has stopped the machine")
    assert not wrong, "\n".join(wrong)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes(boot, tmp_path, saved, data):
    content = bytearray(saved.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    other = tmp_path / "other"
    other.write_bytes(bytes(content))
    machine = boot("framebuffer")
    try:
        load_state(machine, other)
    except StateError:
        return
    machine.run(seconds=0.001)


def test_the_table_is_complete(boot):
    """State added to a block has to be added to the table."""
    machine = boot("hello")
    listed = {id(row.target): set(row.attributes) for row in rows(machine)}
    constants = {"_apb_clock", "base", "log", "_answer_ns", "at_once"}
    for bus in (machine.bus, machine.local_bus):
        for _start, block in bus.blocks:
            plain = {
                name
                for name, value in vars(block).items()
                if isinstance(value, (bool, int, str, list, dict)) and not name.endswith("_timers")
            }
            missing = plain - listed[id(block)] - constants - {"_events"}
            missing = {name for name in missing if not isinstance(vars(block)[name], dict)}
            assert not missing, f"{block.NAME}: {missing} belongs into state_table.py"


@pytest.fixture
def boot64(tmp_path):
    def make(name: str, config: str = "") -> Machine:
        kernel = Path(__file__).parents[1] / "kernels64" / f"{name}.img"
        (tmp_path / "kernel8.img").write_bytes(kernel.read_bytes())
        (tmp_path / "config.txt").write_text(config)
        # the kernel "cores" uses ldaxr without a cache
        return Machine(tmp_path, "pi3", forgiving=name == "cores")

    return make


def registers(machine: Machine) -> list[dict[str, int]]:
    return [snapshot_cpu(core.cpu) for core in machine.processors.all if not core.parked]


@pytest.mark.parametrize(
    ("kernel", "config", "seconds"),
    [
        ("cores", "", 2e-4), ("cores", "", 0.1),
        ("cores", "kernel_old=1\ndisable_commandline_tags=1\n", 1e-5),
        ("levels", "", 6e-8), ("levels", "", 1.4e-7),
    ],
)  # fmt: skip
def test_aarch64_goes_on(boot64, tmp_path, kernel, config, seconds):
    first = boot64(kernel, config)
    first.run(seconds=seconds)
    save_state(first, tmp_path / "state")
    second = boot64(kernel, config)
    load_state(second, tmp_path / "state")
    assert registers(second) == registers(first)
    expected = summary(first, first.run(seconds=0.01))
    assert summary(second, second.run(seconds=0.01)) == expected
    assert registers(second) == registers(first)


def test_aarch64_in_pieces(boot64, tmp_path):
    """A run that is cut into pieces, each in a new machine, ends as one in one piece."""
    machine = boot64("levels")
    levels = set()
    for _ in range(4):
        machine.run(seconds=3e-8)
        save_state(machine, tmp_path / "state")
        machine = boot64("levels")
        load_state(machine, tmp_path / "state")
        levels.add(machine.cores[0].level)
    machine.run(seconds=1e-5)
    whole = boot64("levels")
    whole.run(seconds=2e-5)
    assert levels == {1, 2}
    assert machine.cores[0].state() == whole.cores[0].state()
    assert machine.cores[0].register(24) == 0x12345678


@pytest.mark.parametrize(("name", "value"), [("pstate", 0x3D1), ("x3", "x"), ("more", 1)])
def test_aarch64_registers_that_do_not_fit(boot64, tmp_path, name, value):
    machine = boot64("levels")
    save_state(machine, tmp_path / "state")

    def change(state) -> None:
        state["registers"][0][name] = value

    with pytest.raises(StateError):
        load_state(machine, _changed(tmp_path / "state", tmp_path / "other", change))
    assert machine.run(seconds=0.001).reason is Stop.HALTED


def test_states_of_the_other_instruction_set(boot, boot64, tmp_path, saved):
    with pytest.raises(StateError):
        load_state(boot64("levels"), saved)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_aarch64_any_registers(boot64, data):
    machine = boot64("levels")
    cpu = machine.cores[0]
    saved = snapshot_cpu(cpu)
    for name in data.draw(st.lists(st.sampled_from(sorted(saved)), min_size=1, max_size=8)):
        saved[name] = data.draw(st.integers(0, (1 << 64) - 1))
    saved["pstate"] = data.draw(st.sampled_from(sorted(PSTATE)))
    assert is_sane(saved)
    restore_cpu(cpu, saved)
    machine.run(seconds=0.0001)


@pytest.mark.parametrize("place", ["pipe", "/dev/zero", "."])
def test_no_plain_file(boot, tmp_path, place):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = pipe if place == "pipe" else Path(place)
    machine = boot("hello")
    with pytest.raises(StateError, match="regular file"):
        load_state(machine, path)
    assert not machine.places.use(path, machine.plan)


def test_a_table_of_contents_that_would_eat_the_memory(boot, tmp_path):
    machine = boot("hello")
    path = tmp_path / "state"
    save_state(machine, path)
    data = bytearray(path.read_bytes())
    data[-10:-6] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(StateError, match="not a saved state"):
        load_state(machine, path)
