"""Hostile input: nothing a guest, a recording or a file says may crash or hang or escape."""

from tests.fuzz import (
    assembly,
    attributes,
    boards,
    cache_files,
    cards,
    debuggers,
    gl_sessions,
    lists,
    programs,
    registers,
    shader_forms,
    shaders,
    submits,
    textures,
    tgsi_texts,
    tile_lists,
    transfers,
)
from tests.fuzz.fuzzer import FUZZERS

__all__ = [
    "FUZZERS",
    "assembly",
    "attributes",
    "boards",
    "cache_files",
    "cards",
    "debuggers",
    "gl_sessions",
    "lists",
    "programs",
    "registers",
    "shader_forms",
    "shaders",
    "submits",
    "textures",
    "tgsi_texts",
    "tile_lists",
    "transfers",
]
