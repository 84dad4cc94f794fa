"""Exceptions: how they are taken, and how a slice ends."""
