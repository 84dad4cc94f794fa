"""Open files of the device and what they hold: buffers, fences, handles."""
