"""Shaders as Mesa hands them over: TGSI, read and printed."""
