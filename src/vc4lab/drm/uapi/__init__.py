"""What programs and the kernel hand each other: numbers and structures of the ioctls."""
