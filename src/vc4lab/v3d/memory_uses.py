"""What the memory that a job names is for."""

from __future__ import annotations

from enum import Enum


class Use(Enum):
    """What lies at an address: words for messages, code of the message if it lies outside RAM."""

    LIST = "a control list", "CLE-003"
    TILE_MEMORY = "tile allocation memory", "CLE-003"
    TILE_STATE = "the tile state array", "CLE-003"
    TILE_LIST = "a tile's list", "CLE-003"
    OVERSPILL = "the overspill block (BPOA)", "CLE-003"
    SHADER_RECORD = "a shader record", "CLE-003"
    CODE = "a QPU program", "MEM-001"
    UNIFORMS = "a uniform stream", "MEM-001"
    TEXTURE = "a texture", "MEM-001"
    ATTRIBUTES = "a vertex attribute array", "MEM-001"
    INDICES = "an index array", "MEM-001"
    SURFACE = "the frame buffer of the rendering mode (113)", "CLE-003"

    def __init__(self, words: str, code: str) -> None:
        self.words = words
        self.code = code
        self.number = len(type(self).__members__)

    __hash__ = object.__hash__  # an Enum's own is written in Python

    @property
    def is_read(self) -> bool:
        """Whether the V3D reads there what the program has written."""
        return self not in (Use.TILE_MEMORY, Use.TILE_LIST, Use.TILE_STATE, Use.OVERSPILL, Use.SURFACE)
