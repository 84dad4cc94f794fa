"""The instruction set as tables, and what its operations compute."""
