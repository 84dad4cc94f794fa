"""Looking inside: GDB, breakpoints, traces."""
