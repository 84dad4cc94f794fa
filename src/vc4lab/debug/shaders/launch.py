"""A session of a shader out of what a command line or an editor says: a capture, and which run in it.

Whatever is wrong is a LaunchError with a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vc4lab.capture.errors import CaptureError
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.launch import Frames, LaunchError
from vc4lab.debug.shaders.find import Question, shader_session

if TYPE_CHECKING:
    from vc4lab.debug.session import Session


@dataclass(frozen=True)
class ShaderLaunch:
    """Describes which run of a shader is stepped. frames: opens the capture."""

    capture: Path
    question: Question
    frames: Frames

    @property
    def is_named(self) -> bool:
        """Whether there is a program: the question names it."""
        return True

    def session(self) -> tuple[Session, list[str]]:
        """The program where it begins, and which run it is. Raises LaunchError."""
        try:
            capture, known = self.frames(self.capture)
            return shader_session(capture, self.question, known)
        except NoSuchPlace as error:
            raise LaunchError(f"{self.capture}: {error}") from None
        except CaptureError as error:
            raise LaunchError(f"{error}\nSee vc4lab explain {error.code}.") from None
