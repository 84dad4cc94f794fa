"""Opens captures and recorded jobs of every kind, and checks them against what they hold."""
