"""audio: the notes of the tune in the recording, by their frequencies."""

import wave
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app

CARD = Path(__file__).parents[2] / "examples" / "audio" / "sdcard"
RATE, NOTE = 40_000, 0.16
C4, E4, G4, C5 = 261.626, 329.628, 391.995, 523.251
TUNE = [C4, E4, G4, C5, G4, E4, C4]
POINTS = 1 << 17


def record(tmp_path: Path, *options: str) -> tuple[np.ndarray, str]:
    """Samples (n, 2) and the words on the UART."""
    file = tmp_path / "tune.wav"
    arguments = ["boot", str(CARD), "--headless", "--serial", "stdio", "--audio", str(file)]
    result = CliRunner().invoke(app, [*arguments, *options])
    assert result.exit_code == ExitCode.OK, result.output
    with wave.open(str(file)) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (RATE, 2)
        raw = sound.readframes(sound.getnframes())
    return np.frombuffer(raw, "<i2").reshape(-1, 2).astype(float), result.stdout


def spectrum(samples: np.ndarray, begin: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies and their strength, in a part of the sound (seconds)."""
    part = samples[int(begin * RATE) : int(end * RATE)].sum(axis=1)
    part = (part - part.mean()) * np.hanning(len(part))
    return np.fft.rfftfreq(POINTS, 1 / RATE), np.abs(np.fft.rfft(part, POINTS))


def test_the_tune_is_played(tmp_path: Path) -> None:
    samples, words = record(tmp_path)
    assert "64000 frames played, 0 buffers late" in words
    assert len(samples) == pytest.approx(64_000, abs=8)

    for number, hertz in enumerate(TUNE):
        frequencies, strength = spectrum(samples, number * NOTE + 0.02, number * NOTE + 0.15)
        assert frequencies[strength.argmax()] == pytest.approx(hertz, rel=0.003)

    frequencies, strength = spectrum(samples, len(TUNE) * NOTE + 0.02, 1.6)
    inner = strength[1:-1]
    peaks = np.flatnonzero((inner > strength[:-2]) & (inner > strength[2:])) + 1
    loudest = sorted(peaks, key=lambda place: -strength[place])[:4]
    assert sorted(frequencies[loudest]) == pytest.approx([C4, E4, G4, C5], rel=0.003)

    # A note is loud at once and dies away; the low ones sit on the left.
    swing = np.abs(samples)
    attack, tail = (swing[int(at * RATE) : int((at + 0.02) * RATE)].max() for at in (0.005, 0.13))
    assert attack > 2 * tail > 0
    left, right = swing[: int(NOTE * RATE)].max(axis=0)
    assert left > 1.5 * right
    assert swing.max() < 32767  # nothing is clipped


def test_it_is_the_same_sound_on_every_kernel(tmp_path: Path) -> None:
    first, *others = [
        record(tmp_path, "--board", board, "--seconds", "0.25")[0] for board in ("pi1", "pi2", "pi3")
    ]
    count = int(0.2 * RATE)
    assert len(first) > count
    for other in others:
        assert np.array_equal(first[:count], other[:count])
