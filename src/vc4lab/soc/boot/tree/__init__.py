"""The device tree: read, overlaid, changed by config.txt."""
