"""The staged vector language: Python functions become native code."""
