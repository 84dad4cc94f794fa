"""PWM sound: its pace, its FIFO, the DMA that feeds it, and the recording."""

import struct
import wave
from dataclasses import replace

import pytest

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.outputs import PictureOptions
from vc4lab.cli.session import run_session
from vc4lab.cli.settings import InstrumentOptions, Settings
from vc4lab.soc.devices.sound.audio import AudioRecorder
from vc4lab.soc.states.state import load_state, save_state

HALT = bytes.fromhex("feffffea")
PWM, CM, DMA = 0x20C000, 0x101000, 0x7000
CTL, STA, DMAC, RNG1, DAT1, FIF1, RNG2 = 0, 4, 8, 0x10, 0x14, 0x18, 0x20
RANGE = 2000
SAMPLE_NS = 20_000
BLOCK, SAMPLES = 0x10000, 0x20000


@pytest.fixture
def machine(boot):
    return boot(HALT)


def write(machine, at, value):
    machine.bus.write(PWM + at, 4, value)


def read(machine, at):
    return machine.bus.read(PWM + at, 4)


def begin(machine, control):
    """500 MHz / 5 / 2000: 50,000 samples a second."""
    machine.bus.write(CM + 0xA4, 4, 0x5A000000 | 5 << 12)
    machine.bus.write(CM + 0xA0, 4, 0x5A000016)
    write(machine, RNG1, RANGE)
    write(machine, RNG2, RANGE)
    write(machine, CTL, control)


def codes(machine):
    return {item.code for item in machine.reporter.items}


def frames(path):
    with wave.open(str(path)) as file:
        rate, count = file.getframerate(), file.getnframes()
        raw = file.readframes(count)
    return rate, list(struct.iter_unpack("<2h", raw))


def test_the_fifo_empties_at_the_clocks_pace(machine):
    begin(machine, 0x2121)
    assert machine.pwm.sample_rate == 50_000
    assert read(machine, STA) & 3 == 2
    for _ in range(16):
        write(machine, FIF1, 1000)
    machine.clock.skip(SAMPLE_NS // 2)
    assert machine.pwm.played in (0, 2)
    machine.clock.skip(3 * SAMPLE_NS)
    assert read(machine, STA) & 2 == 0
    machine.clock.skip(20 * SAMPLE_NS)
    assert read(machine, STA) & 0x12 == 0x12
    assert machine.pwm.played >= 16
    write(machine, CTL, 0)
    write(machine, STA, 0x10)
    assert read(machine, STA) & 0x10 == 0


FULL, EMPTY = 1, 2
LOOP = (0xE59F0010, 0xE5902004, 0xE2833001, 0xE3120000, 0x0AFFFFFB, 0xEAFFFFFE, 0x3F000000 | PWM)
"""ldr r0, =PWM; again: ldr r2, [r0, #4]; add r3, r3, #1; tst r2, #...; b(eq) again; b ."""
NE, COUNTS = 1 << 28, 2
"""The other condition; where the loop counts its looks."""


@pytest.mark.parametrize(
    ("flag", "while_set", "words"), [(FULL, True, 1), (EMPTY, False, 8)], ids=["room", "the end"]
)
def test_waiting_for_the_fifo(machine, flag, while_set, words):
    """Time goes to the moment at which STA changes; a loop that counts its looks is executed."""
    counts = []
    for counted in (False, True):
        code = list(LOOP)
        code[3] |= flag
        code[4] |= NE if while_set else 0
        if not counted:
            code[COUNTS] = 0xE1A00000
        machine.memory.write(0x8000, struct.pack("<7I", *code))
        write(machine, CTL, 0)
        begin(machine, 0x2161)
        while not read(machine, STA) & FULL:
            write(machine, FIF1, 1000)
        end = machine.pwm._next // 1000 + (words - 1) * SAMPLE_NS
        machine.cpu.pc = 0x8000
        machine.cpu.set_register(3, 0)
        counts.append(end - machine.clock.now)
        machine.run(seconds=(end - machine.clock.now) / 1e9 + 5e-6)
        assert machine.cpu.pc == 0x8014, "it ends when STA says so"
        assert machine.clock.now - end >= 0
    looks = counts[1] / (50 + 4 * machine.board.ns_per_instruction)
    assert machine.cpu.register(3) == pytest.approx(looks, rel=0.03)


def test_a_full_fifo_says_why(machine):
    for _ in range(17):
        write(machine, FIF1, 1)
    assert read(machine, STA) & 5 == 5
    assert "clock is stopped" in str(machine.reporter.items[-1])
    assert "SOC-056" in codes(machine)
    write(machine, CTL, 0x40)
    assert read(machine, STA) & 3 == 2


def feed_by_dma(machine):
    """Two blocks in a circle, as players do it: a ramp up on the left, down on the right."""
    words = [w for i in range(100) for w in (20 * i, 2000 - 20 * i)]
    machine.memory.write(SAMPLES, struct.pack("<200I", *words))
    info = 1 << 6 | 1 << 8 | 5 << 16
    for block, following in ((BLOCK, BLOCK + 32), (BLOCK + 32, BLOCK)):
        words = (info, SAMPLES, 0x7E20C018, 800, 0, following, 0, 0)
        machine.memory.write(block, struct.pack("<8I", *words))
    write(machine, DMAC, 1 << 31 | 0x707)
    machine.bus.write(DMA + 4, 4, BLOCK)
    machine.bus.write(DMA, 4, 1)


def test_dma_plays_into_a_file(machine, tmp_path):
    path = tmp_path / "sound.wav"
    recorder = AudioRecorder(path, machine.pwm)
    begin(machine, 0x2121)
    feed_by_dma(machine)
    machine.run(seconds=0.02)
    recorder.close()
    rate, played = frames(path)
    assert rate == 50_000
    assert 950 <= len(played) <= 1050
    ramp = [int((20 * i / 1000 - 1) * 32767) for i in range(100)]
    assert [left for left, _ in played[:300]] == ramp * 3
    assert all(abs(left + right) <= 1 for left, right in played)
    assert "SOC-053" not in codes(machine)


def test_sound_goes_on_from_a_state(boot, machine, tmp_path):
    begin(machine, 0x2121)
    feed_by_dma(machine)
    machine.run(seconds=0.01)
    save_state(machine, tmp_path / "state")
    other = boot(HALT)
    load_state(other, tmp_path / "state")
    for each in (machine, other):
        recorder = AudioRecorder(tmp_path / "sound.wav", each.pwm)
        each.run(seconds=0.01)
        recorder.close()
        if each is machine:
            expected = frames(tmp_path / "sound.wav")
    assert frames(tmp_path / "sound.wav") == expected


def test_levels_without_fifo(machine, tmp_path):
    recorder = AudioRecorder(tmp_path / "sound.wav", machine.pwm)
    begin(machine, 1)
    for level in (0, 2000, 1000):
        write(machine, DAT1, level)
        machine.clock.skip(1_000_000)
    recorder.close()
    _, played = frames(tmp_path / "sound.wav")
    assert played[10] == (-32767, -32767)
    assert played[60] == (32767, 32767)


def test_nothing_was_played(machine, tmp_path):
    recorder = AudioRecorder(tmp_path / "sound.wav", machine.pwm)
    recorder.close()
    assert recorder.samples == 0


def test_boot_says_what_it_recorded(tmp_path, capsys):
    (tmp_path / "kernel7.img").write_bytes(HALT)
    path = tmp_path / "sound.wav"
    settings = Settings(
        tmp_path,
        pictures=PictureOptions(headless=True),
        instruments=InstrumentOptions(audio=path),
        serial="none",
    )
    assert run_session(settings) is ExitCode.OK
    assert "played nothing" in capsys.readouterr().err
    elsewhere = InstrumentOptions(audio=tmp_path / "no" / "sound.wav")
    assert run_session(replace(settings, instruments=elsewhere)) is ExitCode.OUTPUT
    assert "CLI-001" in capsys.readouterr().err
