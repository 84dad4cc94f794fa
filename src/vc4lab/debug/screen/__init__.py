"""The session on the whole screen of a terminal (extra `debug`: Textual)."""
