"""The command queue: what it holds, and what executes it."""
