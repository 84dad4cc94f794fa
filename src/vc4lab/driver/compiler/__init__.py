"""The shader compiler."""
