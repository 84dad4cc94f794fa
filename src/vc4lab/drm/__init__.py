"""The Linux side: the kernel's half of a job, recorded jobs, and the virtual device."""
