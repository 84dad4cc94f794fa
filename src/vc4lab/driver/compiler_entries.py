"""The compiler as draws use it: TGSI text and key → program, from disk where it was made before."""

from __future__ import annotations

from functools import lru_cache

from vc4lab.driver.compiler.compile import compile_fragment, compile_vertex
from vc4lab.driver.compiler.keys import FragmentKey, VertexKey
from vc4lab.driver.compiler.machine.code import TooComplex
from vc4lab.driver.compiler.result import CompiledShader, CompiledVertex
from vc4lab.driver.compiler.tgsi.errors import TgsiError
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import Program
from vc4lab.driver.draws.programs import CompileError, Compiler
from vc4lab.driver.program_cache import kept


def mesa_compiler() -> Compiler:
    """That of `compiler/`."""
    return Compiler(_fragment, _vertex)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Program:
    return parse(text)


def _fragment(text: str, key: FragmentKey) -> CompiledShader:
    try:
        return kept(text, key, CompiledShader, lambda: compile_fragment(_parsed(text), key))
    except (TgsiError, TooComplex) as reason:
        raise _error("fragment", reason) from None


def _vertex(text: str, key: VertexKey) -> CompiledVertex:
    try:
        return kept(text, key, CompiledVertex, lambda: compile_vertex(_parsed(text), key))
    except (TgsiError, TooComplex) as reason:
        raise _error("vertex", reason) from None


def _error(stage: str, reason: TgsiError | TooComplex) -> CompileError:
    line = reason.line if isinstance(reason, TgsiError) else 0
    return CompileError(f"{stage} shader: {reason}", line)
