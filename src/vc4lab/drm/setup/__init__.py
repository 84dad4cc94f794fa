"""Brings Mesa's vc4 driver and test programs for arm64, and runs them here under qemu-user."""
