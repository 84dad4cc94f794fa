"""The SD controller, the card behind it, and what holds the card's blocks."""
