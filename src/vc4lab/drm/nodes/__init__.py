"""Nodes that programs find under /dev and /sys."""
