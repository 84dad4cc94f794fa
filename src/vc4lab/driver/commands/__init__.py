"""The command queue's language: commands and blocks of state, in their three forms."""
