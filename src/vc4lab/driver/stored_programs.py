"""The programs that drew a capture: words and uniforms, by shader and by the state in them.

A shader or a state that was edited has no stored program; it is compiled when it is drawn.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from vc4lab.driver.compiler.interface import (
    VERTEX_NUMBER,
    AttributeSlot,
    CompiledShader,
    CompiledVertex,
    FragmentKey,
    Stage,
    Uniform,
    UniformKind,
    Varying,
    VertexKey,
)
from vc4lab.driver.draws.programs import CompileError, Compiler
from vc4lab.mesa.protocol.payload import Payload

if TYPE_CHECKING:
    from vc4lab.capture.table import Value
    from vc4lab.driver.capture.model import Capture
    from vc4lab.driver.draws.programs import Programs

MAX_WORDS = 1 << 14
MAX_UNIFORMS = 1 << 16
_WORD = 1 << 32


@dataclass
class StoredProgram:
    """A fragment program, or a vertex program with its coordinate program.

    Attributes
    ----------
    text
        The shader in TGSI.
    key
        The state that is part of it, as `plain` makes it of the compiler's key.
    made
        The compiler's result.
    edited
        The file in which it was edited; "": it was not.
    is_used
        Whether something was drawn with it.
    """

    text: str
    key: Any
    made: CompiledShader | CompiledVertex
    edited: str = ""
    is_used: bool = False

    @property
    def shaders(self) -> tuple[CompiledShader, ...]:
        """Its programs."""
        if isinstance(self.made, CompiledVertex):
            return self.made.vertex, self.made.coordinate
        return (self.made,)


def plain(value: Any) -> Any:
    """A key as JSON has it: dataclasses as objects, members of enumerations by name.

    Fields that have their defaults are left out, so that keys which get another field later still
    are the same.
    """
    if isinstance(value, Payload) or dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)  # type: ignore[arg-type]
        values = [(one, getattr(value, one.name)) for one in fields]
        return {one.name: plain(held) for one, held in values if held != one.default}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


def text_sum(text: str) -> str:
    """By which a program knows the shader that it was made of."""
    return hashlib.sha256(text.encode()).hexdigest()


def _lookup(text: str, key: Any) -> tuple[str, str]:
    return text, json.dumps(key, sort_keys=True)


def stored_programs(programs: Programs, capture: Capture) -> list[StoredProgram]:
    """The programs that draws of a capture may have used."""
    texts = set(capture.parts["shader"].values())
    return [StoredProgram(text, plain(key), made) for text, key, made in programs.known() if text in texts]


def stored_compiler(capture: Capture, otherwise: Compiler) -> Compiler:
    """A compiler that gives the stored programs where there are some."""
    known = {_lookup(one.text, one.key): one for one in capture.programs}

    def found(text: str, key: Any) -> CompiledShader | CompiledVertex | None:
        stored = known.get(_lookup(text, plain(key)))
        if stored is None:
            return None
        stored.is_used = True
        made: CompiledShader | CompiledVertex = stored.made
        return made

    def fragment(text: str, key: FragmentKey) -> CompiledShader:
        made = found(text, key)
        return made if isinstance(made, CompiledShader) else otherwise.fragment(text, key)

    def vertex(text: str, key: VertexKey) -> CompiledVertex:
        made = found(text, key)
        return made if isinstance(made, CompiledVertex) else otherwise.vertex(text, key)

    return Compiler(fragment, vertex)


def named_compiler(capture: Capture, otherwise: Compiler) -> Compiler:
    """A compiler that names the file of a shader which cannot be compiled."""

    def named(error: CompileError, text: str) -> CompileError:
        file = capture.files.get(text)
        if file is None:
            return error
        place = f"{file}:{error.line}" if error.line else file
        return CompileError(f"{place}: {error}", error.line)

    def fragment(text: str, key: FragmentKey) -> CompiledShader:
        try:
            return otherwise.fragment(text, key)
        except CompileError as error:
            raise named(error, text) from None

    def vertex(text: str, key: VertexKey) -> CompiledVertex:
        try:
            return otherwise.vertex(text, key)
        except CompileError as error:
            raise named(error, text) from None

    return Compiler(fragment, vertex)


# -- as JSON ---------------------------------------------------------------------------------------


def to_json(program: StoredProgram, shader: str) -> dict[str, Any]:
    """A program for the table. shader: the name of its text."""
    made = program.made
    found: dict[str, Any] = {"shader": shader, "sum": text_sum(program.text), "key": program.key}
    if isinstance(made, CompiledVertex):
        found["attributes"] = [
            [one.element, one.size, one.vertex_offset, one.coordinate_offset] for one in made.attributes
        ]
    found["programs"] = [_shader_json(one) for one in program.shaders]
    return found


def _shader_json(shader: CompiledShader) -> dict[str, Any]:
    return {
        "stage": shader.stage.value,
        "words": [f"{word:016x}" for word in shader.words],
        "uniforms": [[one.kind.name, one.index, one.value] for one in shader.uniforms],
        "varyings": [[one.name, one.index, one.component, one.interpolation] for one in shader.varyings],
        **{name: getattr(shader, name) for name in _FLAGS},
        "lines": [list(one) for one in shader.lines],
    }


_FLAGS = ("is_threaded", "uses_discard", "writes_depth", "reads_color")
_STAGES = {1: (Stage.FRAGMENT,), 2: (Stage.VERTEX, Stage.COORDINATE)}


def from_json(value: Value, text: str) -> StoredProgram:
    """The program of a table's entry. Raises CaptureError."""
    shaders = [_shader(one) for one in value["programs"]]
    expected = _STAGES.get(len(shaders))
    if expected is None or tuple(one.stage for one in shaders) != expected:
        raise value.wrong("must have a fragment, or a vertex and a coordinate program")
    made: CompiledShader | CompiledVertex = shaders[0]
    if len(shaders) > 1:
        slots = tuple(_slot(one) for one in value["attributes"])
        if not 1 <= len(slots) <= 8:
            raise value.wrong("must have 1 to 8 attributes")
        made = CompiledVertex(shaders[0], shaders[1], slots)
    edited = value.get("edited")
    return StoredProgram(text, value["key"].value, made, edited.text() if edited else "")


def _slot(value: Value) -> AttributeSlot:
    offsets = [None if value[place].value is None else value[place].whole(0, 255) for place in (2, 3)]
    return AttributeSlot(value[0].whole(VERTEX_NUMBER, 31), value[1].whole(1, 16), offsets[0], offsets[1])


def _shader(value: Value) -> CompiledShader:
    stages = {one.value: one for one in Stage}
    stage = stages.get(value["stage"].text())
    if stage is None:
        raise value.wrong(f"its stage is none of {', '.join(stages)}")
    words = tuple(_hex(one) for one in value["words"])
    uniforms = tuple(_uniform(one) for one in value["uniforms"])
    varyings = tuple(
        Varying(one[0].text(), one[1].whole(0, 255), one[2].whole(0, 3), one[3].text())
        for one in value["varyings"]
    )
    if not 1 <= len(words) <= MAX_WORDS or len(uniforms) > MAX_UNIFORMS or len(varyings) > 64:
        raise value.wrong("it is larger than programs are")
    lines = value.get("lines")
    sources = (
        () if lines is None else tuple(tuple(number.whole(0, 1 << 20) for number in one) for one in lines)
    )
    return CompiledShader(
        stage, words, uniforms, varyings=varyings, lines=sources,
        **{name: value[name].flag() for name in _FLAGS},
    )  # fmt: skip


def _hex(value: Value) -> int:
    text = value.text()
    try:
        if len(text) != 16:
            raise ValueError(text)
        return int(text, 16)
    except ValueError:
        raise value.wrong("must be a word of 16 hex digits") from None


def _uniform(value: Value) -> Uniform:
    kind = UniformKind.__members__.get(value[0].text())
    if kind is None:
        raise value.wrong("there is no such uniform")
    index, number = value[1].whole(0, 255), value[2].whole(-(1 << 31), _WORD - 1)
    if kind is not UniformKind.LITERAL and number < 0:
        raise value.wrong("must not be negative")
    return Uniform(kind, index, number)
