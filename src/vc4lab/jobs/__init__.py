"""Captured jobs: everything that reached a V3D, kept, shown and run again."""
