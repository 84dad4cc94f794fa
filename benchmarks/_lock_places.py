"""``python -m benchmarks._lock_places DIR``: what it costs to take the lock of the tile buffer earlier.

DIR has recorded scenes, as VC4_SCENES of `board_frames` names them. The first write of the tile buffer
of each fragment program goes up to some earlier instruction, which changes nothing but when the
lock is taken; then the frames are timed. Mesa's commit of November 2016, which no longer lets that
write be paired early, gained two scenes 1.24 and 1.25 % on a board; where the write was before is
not published, so the table has several places. It has two scoreboards: that of the chip's file,
and one that waits by quads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks._scene_page import last_picture
from benchmarks.board_frames import BOARD, COPY, on_a_screen, recorded_scenes
from vc4lab.drm.recorded.replay import replay
from vc4lab.qpu.isa.accesses import accesses
from vc4lab.timing.boards import speeds_of
from vc4lab.timing.changes import changed
from vc4lab.timing.chip import Chip
from vc4lab.timing.frame_times import clocks_of
from vc4lab.timing.frames.frame import Frame, Words
from vc4lab.timing.profile.late_scoreboard import PIXELS

PLACES = {"texture:texture-filter=linear": (1, 3, 5, 6, 8), "bump:bump-render=height": (1, 6, 12, 18, 24, 30)}
"""Instructions at which the lock is taken, by scene."""
SQUARE = "tile_buffer", "square"
PICTURES = 3


def early_words(words: Words, place: int) -> Words:
    """A program whose first access to the tile buffer is its instruction `place`, or earlier."""
    touching = [number for number, word in enumerate(words) if accesses(word).kinds & PIXELS]
    if not touching or touching[0] <= place:
        return words
    rest = [*words[: touching[0]], *words[touching[0] + 1 :]]
    return (*rest[:place], words[touching[0]], *rest[place:])


def milliseconds(frames: Iterable[Frame], jobs: int, chip: Chip, place: int | None = None) -> float:
    """Milliseconds of a picture of so many jobs, the copy to its window included."""
    moved = [
        frame
        if place is None
        else replace(frame, programs=tuple(early_words(words, place) for words in frame.programs))
        for frame in frames
    ]
    speed = speeds_of(chip).of_board[BOARD]
    clocks = clocks_of(chip, speed, [*moved, *moved[:jobs]])  # the first one has its binning besides
    return 1000 * sum(clocks[jobs:]) / (len(moved) // jobs) / speed.clock + COPY


def frames_of(folder: Path) -> list[Frame]:
    """The frames of a recorded run."""
    frames: list[Frame] = []
    replay(folder, on_work=lambda _name, found: frames.extend(found))
    return frames


def lines(folder: Path) -> Iterable[str]:
    """The table, as Markdown."""
    yield "| scene | scoreboard | as compiled, ms | lock at instruction: more time |"
    yield "| --- | --- | --- | --- |"
    recorded = recorded_scenes(folder)
    chip = on_a_screen()
    for scene, places in PLACES.items():
        frames = frames_of(recorded[scene])
        jobs = len(last_picture(frames))
        timed = frames[-jobs * max(1, min(PICTURES, len(frames) // jobs - 2)) :]
        for square in (chip.whole(*SQUARE), 2):
            other = changed(chip, {SQUARE: square}, "square")
            before = milliseconds(timed, jobs, other)
            more = (
                f"{place}: {100 * (milliseconds(timed, jobs, other, place) / before - 1):+.1f} %"
                for place in places
            )
            yield f"| {scene} | {square}x{square} pixels | {before:.2f} | {', '.join(more)} |"


if __name__ == "__main__":
    for line in lines(Path(sys.argv[1])):
        print(line)
