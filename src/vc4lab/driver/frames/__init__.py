"""A frame's control lists."""
