"""Devices: interrupts, timers, serial lines, GPIO, DMA, sound, buses without anybody."""
