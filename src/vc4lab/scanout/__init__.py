"""What the display hardware (HVS) makes of planes: one picture, line by line."""
