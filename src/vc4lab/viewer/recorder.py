"""Recording frames: an animated GIF, WebP or PNG by the file's suffix."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vc4lab.viewer.fitting import place
from vc4lab.viewer.pictures import save_picture

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = {".gif": "GIF", ".webp": "WEBP", ".png": "PNG", ".apng": "PNG"}
MILLISECOND = 1_000_000
GIF_STEP = 30
"""Milliseconds between GIF frames at least: viewers slow down what is meant to be faster."""
STEP = 16
MAX_FRAMES = 600
"""Beyond this every second frame is dropped, again and again: a recording has bounded size."""
MAX_BYTES = 1 << 29
"""Bytes of the frames in memory; beyond this, too, every second frame is dropped."""
PALETTE_SIDE = 160
"""A frame's 256 colours are chosen from a picture of at most this size: quick and good enough."""
HOLD = 100
"""Milliseconds the last frame stays."""


class Recorder:
    """Collects frames with their guest time and writes them as an animation.

    Parameters
    ----------
    path
        File to write; its suffix chooses the format.

    Raises
    ------
    ValueError
        The suffix is none of `SUFFIXES`.

    Attributes
    ----------
    step
        Nanoseconds between two frames at least.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format = SUFFIXES.get(path.suffix.lower(), "")
        if not self.format:
            raise ValueError(f"{path}: the name of a recording ends in {', '.join(SUFFIXES)}")
        self.step = (GIF_STEP if self.format == "GIF" else STEP) * MILLISECOND
        self._frames: list[tuple[int, Image.Image]] = []

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, image: Image.Image, at: int) -> None:
        """Add a picture presented at guest time `at` (ns); too early ones are dropped."""
        if self._frames and at - self._frames[-1][0] < self.step:
            return
        if self._frames and image.size != self._frames[0][1].size:
            image = self._fitted(image)
        self._keep(at, self._packed(image))

    def _fitted(self, image: Image.Image) -> Image.Image:
        """A picture of another mode as large as the recording, in its own shape, black around."""
        from PIL import Image as Pillow

        fitted = Pillow.new("RGB", self._frames[0][1].size)
        left, top, width, height, _scale = place(image.size, fitted.size)
        fitted.paste(image.convert("RGB").resize((width, height)), (left, top))
        return fitted

    def _keep(self, at: int, image: Image.Image) -> None:
        self._frames.append((at, image))
        size = image.width * image.height * len(image.getbands())
        if len(self._frames) > min(MAX_FRAMES, max(MAX_BYTES // size, 2)):
            self._frames = self._frames[::2]
            self.step *= 2

    def add_again(self, at: int) -> None:
        """Add the last picture once more, as it stands at guest time `at` (ns)."""
        if self._frames and self.wants(at):
            self._keep(at, self._frames[-1][1])

    def add_last(self, image: Image.Image, at: int) -> None:
        """Add the picture that is left at guest time `at` (ns), even if it comes too early."""
        if self._frames:
            at = max(at, self._frames[-1][0] + self.step)
        self.add(image, at)

    def wants(self, at: int) -> bool:
        """Whether a picture of guest time `at` (ns) would be kept."""
        return not self._frames or at - self._frames[-1][0] >= self.step

    def _packed(self, image: Image.Image) -> Image.Image:
        if self.format != "GIF":
            return image.convert("RGB")
        from PIL import Image as Pillow

        picture = image.convert("RGB")
        small = picture.resize(
            (min(picture.width, PALETTE_SIDE), min(picture.height, PALETTE_SIDE)), Pillow.Resampling.NEAREST
        )
        palette = small.quantize(256, method=Pillow.Quantize.MEDIANCUT)
        return picture.quantize(palette=palette, dither=Pillow.Dither.NONE)

    def save(self) -> bool:
        """Write the file whole; False if no frame came. Raises OSError with its name."""
        if not self._frames:
            return False
        times = [at // MILLISECOND for at, _image in self._frames]
        grain = 10 if self.format == "GIF" else 1
        starts = [round(t / grain) * grain for t in times]
        durations = [b - a for a, b in pairwise(starts)] + [HOLD]
        first, *rest = [image for _at, image in self._frames]
        options: dict[str, Any] = {"loop": 0, "duration": durations}
        if self.format == "GIF":
            options |= {"optimize": False, "disposal": 1}
        if self.format == "WEBP":
            options |= {"lossless": True, "method": 0}
        if len(self._frames) == 1:
            options["duration"] = durations[0]
        save_picture(first, self.path, self.format, save_all=True, append_images=rest, **options)
        return True
