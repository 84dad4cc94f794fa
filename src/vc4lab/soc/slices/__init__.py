"""The time slices of the cores: which core runs next, in Python and natively, and how a run ends."""
