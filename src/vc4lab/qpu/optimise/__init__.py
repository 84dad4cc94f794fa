"""Programs rearranged: pairs, delay slots, latencies, registers."""
