"""The interface between programs and the kernel: numbers and structures of the ioctls."""
