"""Addresses: how register blocks are declared, what is at an address, where nothing is, names."""
