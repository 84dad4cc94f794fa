"""Front ends of the assembler: what other tools call QPU assembly, as words of the same tables."""
