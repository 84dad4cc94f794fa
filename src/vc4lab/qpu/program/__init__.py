"""Programs: their words, where they lie, and what they consume."""
