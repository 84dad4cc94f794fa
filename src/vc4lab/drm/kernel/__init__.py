"""What the kernel makes of a job."""
