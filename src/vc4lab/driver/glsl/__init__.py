"""Shaders in GLSL, as they are compiled for listings: their partners, their lines."""
