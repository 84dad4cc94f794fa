"""The V3D and its memory, as the driver uses them."""
