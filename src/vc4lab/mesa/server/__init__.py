"""The socket, its clients, and the program that is started with it."""
