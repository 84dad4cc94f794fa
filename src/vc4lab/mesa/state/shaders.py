"""Shaders that come in parts: the text of each is put together before it is an object."""

from __future__ import annotations

from vc4lab.mesa.protocol import limits
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.objects import ShaderPart
from vc4lab.mesa.state.pipe import Shader
from vc4lab.mesa.store.resources import Refused


class ShaderTexts:
    """The texts of a context that are not complete."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Stage, int, bytearray]] = {}

    def add(self, handle: int, part: ShaderPart) -> Shader | None:
        """The shader if this part completes it. Raises Refused."""
        if part.is_continuation:
            known = self._open.pop(handle, None)
            if known is None:
                raise Refused("GL-004", f"shader {handle} is continued, but has no beginning")
            stage, size, text = known
            if part.stage != stage or part.offset != len(text):
                raise Refused(
                    "GL-002", f"shader {handle} is continued at byte {part.offset}, not {len(text)}"
                )
        else:
            stage, size, text = part.stage, part.offset, bytearray()
            self._open.pop(handle, None)
            if not 1 <= size <= limits.SHADER_BYTES:
                raise Refused("GL-006", f"shader {handle} has {size} bytes")
        text += part.part[: size - len(text)]
        if len(text) < size:
            if len(self._open) >= limits.CONTEXTS:
                raise Refused("GL-006", "too many shaders are not complete")
            self._open[handle] = stage, size, text
            return None
        return Shader(stage, bytes(text).partition(b"\0")[0].decode("ascii", "replace"))

    def forget(self, handle: int) -> None:
        """The object is destroyed."""
        self._open.pop(handle, None)
