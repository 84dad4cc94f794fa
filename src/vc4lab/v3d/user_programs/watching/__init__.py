"""User programs that are watched while they run."""
