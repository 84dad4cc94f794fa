"""The timing model: where the cycles of a frame go."""
