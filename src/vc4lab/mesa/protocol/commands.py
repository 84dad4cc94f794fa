"""All commands of the stream: `COMMANDS` by number, and where each is declared."""

from vc4lab.mesa.protocol import absent_commands, state_commands, work_commands
from vc4lab.mesa.protocol.command import COMMANDS

MODULES = (state_commands, work_commands, absent_commands)
"""Importing them declares the commands, besides those of `command.py`."""

__all__ = ["COMMANDS", "MODULES"]
