"""Assembler, disassembler and lint."""
