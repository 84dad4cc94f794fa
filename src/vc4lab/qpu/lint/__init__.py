"""Checks programs: restrictions that the hardware has and does not enforce, and their cures."""
