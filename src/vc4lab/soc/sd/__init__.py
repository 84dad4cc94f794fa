"""The SD controller, the card, and what holds the card's blocks."""
