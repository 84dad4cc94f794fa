"""The event scheduler of frames: the modules that draw, and the work they are fed with."""
