"""The catalogue of diagnostics, one file per area."""
