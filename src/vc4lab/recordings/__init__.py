"""Captures and recorded jobs of every kind behind one face: opened, and checked against what they hold."""
