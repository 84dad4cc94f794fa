"""Shaders in SSA form: scalar values, each made once."""
