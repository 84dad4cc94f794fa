"""Records what a user program does, for those who want to know how long it takes."""
