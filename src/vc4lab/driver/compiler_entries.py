"""The compiler as draws use it: TGSI text and key → program."""

from __future__ import annotations

from vc4lab.driver.compiler.keys import FragmentKey, VertexKey
from vc4lab.driver.compiler.result import CompiledShader, CompiledVertex
from vc4lab.driver.draws.programs import CompileError, Compiler


def mesa_compiler() -> Compiler:
    """That of `compiler/`."""
    return Compiler(_fragment, _vertex)


def _fragment(_text: str, _key: FragmentKey) -> CompiledShader:
    raise CompileError("the compiler is not built yet")


def _vertex(_text: str, _key: VertexKey) -> CompiledVertex:
    raise CompileError("the compiler is not built yet")
