"""Kernel mode setting: connectors, modes, planes, frame buffers, flips, scan-out."""
