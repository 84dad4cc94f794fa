"""Keyboard and pointer, as evdev nodes."""
