"""Recorded frames on many chips: every point of a grid of figures."""
