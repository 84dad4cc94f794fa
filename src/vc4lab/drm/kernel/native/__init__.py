"""The kernel's half of jobs with known shaders, compiled; anything unusual is left to Python."""
