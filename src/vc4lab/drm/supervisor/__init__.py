"""System calls of programs answered from Python: seccomp user notifications."""
