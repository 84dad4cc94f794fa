"""Addresses: how register blocks are declared, who is behind an address, where nobody is, names."""
