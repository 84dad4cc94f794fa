"""Checks of what lists, records and programs name in memory, and hints about lists that run."""
