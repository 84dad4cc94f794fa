"""Captures of the command queue: frames kept with all that they need, edited, drawn again."""
