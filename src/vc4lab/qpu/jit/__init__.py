"""Programs as native code."""
