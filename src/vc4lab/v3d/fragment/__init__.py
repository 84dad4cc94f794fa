"""Fragment programs on blocks of pixels."""
