"""Debian's Linux on a simulated Pi: what --setup brought, a root made of it, a shell to talk to."""
