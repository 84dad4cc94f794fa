"""Devices: interrupts, timers, serial lines, GPIO, DMA, sound, buses with nothing on them."""
