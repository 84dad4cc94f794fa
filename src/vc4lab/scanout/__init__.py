"""Composes planes as the display hardware (HVS) does: one picture, line by line."""
