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
from collections.abc import Iterable, Sequence
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
THREADED = (
    "texture:texture-filter=linear",
    "texture:texture-filter=mipmap",
    "bump:bump-render=normals",
    "bump:bump-render=height",
)
"""Scenes with few lookups; effect2d's programs, made for one thread, would ask for several at a time."""
SQUARE, LOCKS = ("tile_buffer", "square"), ("tile_buffer", "locks")
PICTURES = 3


def early_words(words: Words, place: int) -> Words:
    """A program whose first access to the tile buffer is its instruction `place`, or earlier."""
    touching = [number for number, word in enumerate(words) if accesses(word).kinds & PIXELS]
    if not touching or touching[0] <= place:
        return words
    rest = [*words[: touching[0]], *words[touching[0] + 1 :]]
    return (*rest[:place], words[touching[0]], *rest[place:])


def with_lock_at(frames: Iterable[Frame], place: int) -> list[Frame]:
    """Frames whose fragment programs take the lock at an instruction, or earlier."""
    return [
        replace(one, programs=tuple(early_words(words, place) for words in one.programs)) for one in frames
    ]


def with_one_thread(frames: Iterable[Frame]) -> list[Frame]:
    """Frames none of whose fragment programs shares its QPU."""
    found = []
    for frame in frames:
        draws = frame.draws.copy()
        draws["threads"] = 1
        found.append(replace(frame, draws=draws))
    return found


def milliseconds(frames: Sequence[Frame], jobs: int, chip: Chip) -> float:
    """Milliseconds of a picture of so many jobs, the copy to its window included."""
    speed = speeds_of(chip).of_board[BOARD]
    clocks = clocks_of(chip, speed, [*frames, *frames[:jobs]])  # the first one has its binning besides
    return 1000 * sum(clocks[jobs:]) / (len(frames) // jobs) / speed.clock + COPY


def last_frames(folder: Path) -> tuple[list[Frame], int]:
    """The last pictures of a recorded run, and the jobs of one of them."""
    frames = frames_of(folder)
    jobs = len(last_picture(frames))
    return frames[-jobs * max(1, min(PICTURES, len(frames) // jobs - 2)) :], jobs


def scoreboards() -> list[Chip]:
    """The chip beside a screen: as it is, with a scoreboard of quads, with one vector of a slice in it."""
    chip = on_a_screen()
    return [chip, changed(chip, {SQUARE: 2}, "quads"), changed(chip, {SQUARE: 2, LOCKS: 1}, "a slice")]


def frames_of(folder: Path) -> list[Frame]:
    """The frames of a recorded run."""
    frames: list[Frame] = []
    replay(folder, on_work=lambda _name, found: frames.extend(found))
    return frames


def lines(folder: Path) -> Iterable[str]:
    """The table of locks, as Markdown."""
    yield "| scene | scoreboard | as compiled, ms | lock at instruction: more time |"
    yield "| --- | --- | --- | --- |"
    recorded = recorded_scenes(folder)
    for scene, places in PLACES.items():
        frames, jobs = last_frames(recorded[scene])
        for chip in scoreboards():
            before = milliseconds(frames, jobs, chip)
            after = (milliseconds(with_lock_at(frames, place), jobs, chip) for place in places)
            more = (
                f"{place}: {100 * (ms / before - 1):+.1f} %" for place, ms in zip(places, after, strict=True)
            )
            yield f"| {scene} | {_name(chip)} | {before:.2f} | {', '.join(more)} |"


def thread_lines(folder: Path) -> Iterable[str]:
    """The table of what two threads gain, as Markdown."""
    yield "| scene | scoreboard | one thread, ms | two threads, ms | gain |"
    yield "| --- | --- | --- | --- | --- |"
    recorded = recorded_scenes(folder)
    for scene in THREADED:
        frames, jobs = last_frames(recorded[scene])
        for chip in scoreboards():
            two, one = milliseconds(frames, jobs, chip), milliseconds(with_one_thread(frames), jobs, chip)
            yield f"| {scene} | {_name(chip)} | {one:.2f} | {two:.2f} | {100 * (one / two - 1):+.1f} % |"


def _name(chip: Chip) -> str:
    square = chip.whole(*SQUARE)
    return f"{square}x{square} pixels" + (", one a slice" if chip.whole(*LOCKS) == 1 else "")


if __name__ == "__main__":
    for line in (*lines(Path(sys.argv[1])), "", *thread_lines(Path(sys.argv[1]))):
        print(line)
