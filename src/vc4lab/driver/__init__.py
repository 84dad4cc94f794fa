"""The OpenGL driver: Gallium's state and shaders become what the V3D executes."""
