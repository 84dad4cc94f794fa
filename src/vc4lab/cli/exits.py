"""Exit codes of the commands."""

OK = 0
BAD_INPUT = 2
"""The files or arguments given cannot be used."""
HANG = 3
"""The guest made no progress, or its frame never ended."""
STRICT = 4
"""Strict mode met an error."""
