"""Control list executor: both threads, and native walks of their lists."""
