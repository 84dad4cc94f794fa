"""Records what the PWM plays into a WAV file: 16 bits, stereo, at the rate of the first sample.

The file takes its place when the recording is closed; until then, and if the disk is full, an old
one stays.
"""

from __future__ import annotations

import wave
from pathlib import Path

from vc4lab.files import written_whole
from vc4lab.soc.devices.sound.pwm import Pwm

NANOSECONDS = 1_000_000_000
SLOWEST, FASTEST, USUAL = 4_000, 192_000, 44_100
LONGEST = 1 << 30
"""Bytes of sound; what comes later is dropped."""
FRAME = 4
CHUNK = 1 << 14


class AudioRecorder:
    """Listens to a PWM block. A level stays until the next one comes.

    Raises OSError when the file cannot be written, at once or later (see `error`).
    """

    def __init__(self, path: Path, pwm: Pwm) -> None:
        self.path = path
        self.samples = 0
        """Samples written; 0: nothing was played."""
        self.rate = 0
        self.error: OSError | None = None
        self._pwm = pwm
        self._whole = written_whole(path)
        self._file = self._whole.__enter__()
        self._wave: wave.Wave_write | None = None
        self._begin = 0
        self._level = bytes(FRAME)
        pwm.sink = self._hear

    def _hear(self, moment: int, left: int, right: int) -> None:
        if self._wave is None:
            rate = self._pwm.sample_rate
            self.rate = rate if SLOWEST <= rate <= FASTEST else USUAL
            self._begin = moment
            self._wave = wave.open(self._file, "wb")  # noqa: SIM115 - open until `close`
            self._wave.setparams((2, 2, self.rate, 0, "NONE", ""))
        else:
            self._hold_until(moment)
        self._level = left.to_bytes(2, "little", signed=True) + right.to_bytes(2, "little", signed=True)

    def _hold_until(self, moment: int) -> None:
        """Write the present level for every sample before `moment`, rounded to the nearest."""
        elapsed = moment - self._begin
        until = (2 * elapsed * self.rate + NANOSECONDS) // (2 * NANOSECONDS)
        until = min(until, LONGEST // FRAME)
        try:
            while self.samples < until and self._wave is not None and self.error is None:
                count = min(until - self.samples, CHUNK)
                self._wave.writeframesraw(self._level * count)
                self.samples += count
        except OSError as error:
            self.error = error

    def close(self) -> None:
        """Play out, complete the file's header."""
        self._pwm.catch_up()
        self._pwm.sink = None
        try:
            if self._wave is not None:
                self._hold_until(self._begin + (self.samples + 1) * NANOSECONDS // self.rate)
                self._wave.close()
        except OSError as error:
            self.error = self.error or error
        try:
            lost = self.error
            self._whole.__exit__(type(lost) if lost else None, lost, None)
        except OSError as error:
            self.error = error
