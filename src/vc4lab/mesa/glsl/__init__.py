"""Shaders in GLSL through the Mesa that is installed: what it makes of them, as TGSI text."""
