"""What the display shows, composed by compiled code."""
