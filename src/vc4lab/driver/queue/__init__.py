"""Executes the command queue."""
