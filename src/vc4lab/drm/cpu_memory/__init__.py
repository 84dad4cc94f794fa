"""Estimates the cost of a client's accesses to buffers on the board's own processor."""
