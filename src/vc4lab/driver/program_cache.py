"""Compiled programs on disk, beside the native engine's objects: the same folder, trust and bounds.

A program is found by its shader's text, the state in its key, and a digest of all of the package's
sources, so that a change of the compiler compiles anew. What cannot be read is compiled and
written again. Files are completed before they have their names: any number of processes may use
the folder. They are tables (`capture/stored_programs.py`), read with checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from vc4lab.capture.errors import CaptureError
from vc4lab.capture.table import Value
from vc4lab.driver.capture.stored_programs import StoredProgram, from_json, plain, to_json
from vc4lab.driver.compiler.keys import FragmentKey, VertexKey
from vc4lab.driver.compiler.result import CompiledShader, CompiledVertex
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
