"""The kernel's half of a driver's job."""
