"""The feed of frames: which pieces of work a frame had, as the functional core recorded them."""
