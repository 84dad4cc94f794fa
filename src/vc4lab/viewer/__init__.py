"""Pictures for people: terminal preview, PNG, GIF."""
