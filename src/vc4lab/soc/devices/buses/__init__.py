"""Buses to which little or nothing is attached."""
