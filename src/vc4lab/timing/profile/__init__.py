"""Profiles of frames: where their clocks go, and what would change it."""
