"""What a client's accesses to buffers would cost on the board's own processor."""
