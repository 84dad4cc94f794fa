"""Dumps of other tools, opened as captured jobs: Mesa's CLIF, the kernel's hang states."""
