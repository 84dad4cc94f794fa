"""State that records set, and that the stages of a draw share."""
