"""Hostile programs on the virtual device: random ioctls from several processes and threads.

python -m tests.fuzz.ioctls --count 1000000 --seed 7
"""
