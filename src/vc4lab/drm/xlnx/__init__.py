"""The display driver of the ZynqMP with dumb buffers that the processor may cache."""
