"""Messages and commands, declared once."""
