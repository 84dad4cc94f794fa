"""The way to Mesa: the socket, its messages and commands, Gallium's state as objects."""
