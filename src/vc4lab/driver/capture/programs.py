"""The QPU programs of captured frames of the driver, with what their uniforms are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.driver.compiler.interface import CompiledShader
from vc4lab.jobs.programs import FoundProgram

if TYPE_CHECKING:
    from vc4lab.driver.capture.model import Capture


def programs_of_capture(capture: Capture) -> list[FoundProgram]:
    """The programs that drew a capture, each once."""
    found: dict[tuple[str, tuple[int, ...]], FoundProgram] = {}
    for number, stored in enumerate(capture.programs, 1):
        for one in _shaders(stored.made):
            notes = {index: str(uniform) for index, uniform in enumerate(one.uniforms)}
            made = FoundProgram(one.stage.value, one.words, f"program {number}", 0, notes)
            found.setdefault((made.kind, made.words), made)
    return list(found.values())


def _shaders(made: object) -> list[CompiledShader]:
    if isinstance(made, CompiledShader):
        return [made]
    return [made.vertex, made.coordinate]  # type: ignore[attr-defined]
