"""The virtual DRM device: open files, buffers, fences, vc4's ioctls, the GPU's thread."""
