"""Control list executor and draw states."""
