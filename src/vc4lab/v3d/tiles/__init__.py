"""The tile loop and its threads."""
