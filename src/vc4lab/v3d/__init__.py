"""The GPU: control lists, vertices, bins, tiles, pixels."""
