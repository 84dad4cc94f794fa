"""How an instruction is executed, and the golden interpreter."""
