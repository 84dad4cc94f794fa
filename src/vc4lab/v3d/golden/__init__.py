"""Fragment programs in the golden interpreter."""
