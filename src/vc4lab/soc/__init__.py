"""A Raspberry Pi around the GPU."""
