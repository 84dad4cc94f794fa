"""Composes the display's picture in compiled code."""
