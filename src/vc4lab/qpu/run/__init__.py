"""How an instruction is executed, and the reference interpreter."""
