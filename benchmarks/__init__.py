"""Benchmarks: each module has ``run()`` and returns rows; ``python -m benchmarks`` runs all."""
