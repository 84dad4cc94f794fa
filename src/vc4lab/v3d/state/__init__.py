"""What records set, and what the stages of a draw share."""
