"""Sessions of shaders: the program that drew a pixel of a captured frame, or that shaded a vertex."""
