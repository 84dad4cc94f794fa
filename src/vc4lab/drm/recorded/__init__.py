"""Folders of recorded jobs."""
