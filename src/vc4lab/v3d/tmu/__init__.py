"""Texture and memory lookup unit."""
