"""The session in lines, as in gdb: at a terminal, piped, or from a file."""

from vc4lab.debug.console.console import Console as Console
