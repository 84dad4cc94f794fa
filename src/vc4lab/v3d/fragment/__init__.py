"""Tiles: setup, coverage, fragment shaders, textures, tile buffer."""
