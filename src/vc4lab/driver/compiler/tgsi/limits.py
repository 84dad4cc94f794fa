"""How large a shader may be. What Mesa makes for a VideoCore IV stays far below."""

LINES = 1 << 16
"""Lines of a text."""
LINE = 1 << 12
"""Characters of a line."""
REGISTERS = 1 << 14
"""Registers of a file: numbers are smaller."""
NESTING = 64
"""Loops and conditions inside of each other; virgl says 32 to Mesa."""
