"""Messages to the user, each with a stable code."""
