"""SSA → operations of the QPU."""
