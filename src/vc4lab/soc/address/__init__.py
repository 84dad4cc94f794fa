"""Addresses: how register blocks are declared, what is at an address, and where nothing is."""
