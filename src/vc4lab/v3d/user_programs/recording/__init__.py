"""What a user program does, recorded for who wants to know how long it takes."""
