"""Guest RAM, shared by CPU, GPU and clients without copies."""
