"""Fragment programs in the reference interpreter."""
