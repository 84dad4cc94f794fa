"""Tile buffer: depth, stencil, colour, loads and stores."""
