"""What programs find under /dev and /sys."""
