"""The programs of draws: compiled once for a shader and a key, and put into GPU memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vc4lab.bounded import Bounded
from vc4lab.driver.compiler.interface import CompiledShader, CompiledVertex, FragmentKey, VertexKey

if TYPE_CHECKING:
    from vc4lab.driver.gpu.memory import GpuMemory

CompileFragment = Callable[[str, FragmentKey], CompiledShader]
CompileVertex = Callable[[str, VertexKey], CompiledVertex]
MAX_PROGRAMS = 4096
Known = tuple[str, FragmentKey | VertexKey, CompiledShader | CompiledVertex]
"""A shader, its key, and what it was compiled to."""


class CompileError(Exception):
    """A shader that cannot be compiled; the text says why, and where. line: 0: of none."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Compiler:
    """The two entries of a compiler: TGSI text and key → program. Both raise CompileError."""

    fragment: CompileFragment
    vertex: CompileVertex


@dataclass(frozen=True, eq=False)
class PlacedFragment:
    """A fragment program and where its code is."""

    shader: CompiledShader
    code: int


@dataclass(frozen=True, eq=False)
class PlacedVertex:
    """A vertex and a coordinate program and where their code is."""

    compiled: CompiledVertex
    vertex_code: int
    coordinate_code: int


class Programs:
    """Programs by shader and key. What could not be compiled is not tried again."""

    def __init__(self, memory: GpuMemory, compiler: Compiler) -> None:
        self._memory = memory
        self._compiler = compiler
        self._fragments: Bounded[tuple[str, FragmentKey], PlacedFragment | CompileError] = Bounded(
            MAX_PROGRAMS
        )
        self._vertices: Bounded[tuple[str, VertexKey], PlacedVertex | CompileError] = Bounded(MAX_PROGRAMS)
        self._code: dict[bytes, int] = {}

    def fragment(self, text: str, key: FragmentKey) -> PlacedFragment:
        """The program of a fragment shader. Raises CompileError, OutOfMemory."""
        known = self._fragments.get((text, key))
        if known is None:
            try:
                shader = self._compiler.fragment(text, key)
                known = PlacedFragment(shader, self._place(shader))
            except CompileError as error:
                known = error
            self._fragments[text, key] = known
        if isinstance(known, CompileError):
            raise known
        return known

    def vertex(self, text: str, key: VertexKey) -> PlacedVertex:
        """The programs of a vertex shader. Raises CompileError, OutOfMemory."""
        known = self._vertices.get((text, key))
        if known is None:
            try:
                made = self._compiler.vertex(text, key)
                known = PlacedVertex(made, self._place(made.vertex), self._place(made.coordinate))
            except CompileError as error:
                known = error
            self._vertices[text, key] = known
        if isinstance(known, CompileError):
            raise known
        return known

    def known(self) -> Iterator[tuple[str, FragmentKey | VertexKey, CompiledShader | CompiledVertex]]:
        """Each program that could be compiled, with its shader and key."""
        for (text, key), placed in self._fragments.items():
            if isinstance(placed, PlacedFragment):
                yield text, key, placed.shader
        for (source, state), made in self._vertices.items():
            if isinstance(made, PlacedVertex):
                yield source, state, made.compiled

    def _place(self, shader: CompiledShader) -> int:
        """The address of a program's code; equal programs are stored once."""
        code = shader.code
        address = self._code.get(code)
        if address is None:
            address = self._code[code] = self._memory.store(code)
        return address
