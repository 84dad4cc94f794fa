"""The kernel's half of a job."""
