"""Control list executor: both threads, and native execution of binning lists."""
