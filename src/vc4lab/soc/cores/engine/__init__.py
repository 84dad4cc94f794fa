"""The CPU engine (Unicorn): calls into it, and functions of its own that are replaced."""
