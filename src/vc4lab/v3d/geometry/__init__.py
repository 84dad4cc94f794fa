"""Vertex fetch and shading, clipping, binning, tile lists."""
