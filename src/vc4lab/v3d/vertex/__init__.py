"""Vertex fetch and shading (VCM, VCD)."""
