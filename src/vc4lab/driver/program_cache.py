"""Compiled programs as draws use them: TGSI text and key → program, from disk where it was made before.

Programs lie beside the native engine's objects: the same folder, trust and bounds. A program is found by
its shader's text, the state in its key, and a digest of all of the package's sources, so that a change of
the compiler compiles anew. What cannot be read is compiled and written again. Files are completed before
they have their names: any number of processes may use the folder. They are tables
(`stored_programs.py`), read with checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.table import Value
from vc4lab.driver.compiler.compile import USUAL, Choices, compile_fragment, compile_vertex
from vc4lab.driver.compiler.interface import CompiledShader, CompiledVertex, FragmentKey, VertexKey
from vc4lab.driver.compiler.tgsi.parser import parse
from vc4lab.driver.compiler.tgsi.program import Program, TgsiError
from vc4lab.driver.draws.programs import CompileError, Compiler
from vc4lab.driver.stored_programs import StoredProgram, from_json, plain, to_json
from vc4lab.qpu.machine.code import TooComplex
from vc4lab.simd import cache

Made = TypeVar("Made", CompiledShader, CompiledVertex)


def kept(text: str, key: FragmentKey | VertexKey, kind: type[Made], make: Callable[[], Made]) -> Made:
    """The program of a shader and a key: from disk, or made and kept. Raises what `make` raises."""
    state = plain(key)
    name = cache.digest(
        "driver", cache.source_digest(), kind.__name__, text, json.dumps(state, sort_keys=True)
    )
    found = _read(name, text)
    if isinstance(found, kind):
        return found
    made = make()
    table = to_json(StoredProgram(text, state, made), "")
    cache.write(name, json.dumps(table, separators=(",", ":")).encode())
    return made


def _read(name: str, text: str) -> CompiledShader | CompiledVertex | None:
    data = cache.read(name)
    if data is None:
        return None
    try:
        return from_json(Value(json.loads(data), "", name), text).made
    except (CaptureError, ValueError, RecursionError):
        return None


def mesa_compiler(choices: Choices = USUAL) -> Compiler:
    """That of `compiler/`. With other choices than the usual ones nothing is kept."""
    if choices == USUAL:
        return Compiler(_fragment, _vertex)

    def fragment(text: str, key: FragmentKey) -> CompiledShader:
        try:
            return compile_fragment(_parsed(text), key, choices)
        except (TgsiError, TooComplex) as reason:
            raise _error("fragment", reason) from None

    def vertex(text: str, key: VertexKey) -> CompiledVertex:
        try:
            return compile_vertex(_parsed(text), key, choices)
        except (TgsiError, TooComplex) as reason:
            raise _error("vertex", reason) from None

    return Compiler(fragment, vertex)


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
