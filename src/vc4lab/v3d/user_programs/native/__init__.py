"""User programs as native code."""
