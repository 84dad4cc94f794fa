"""The QPU instruction set: tables, semantics, interpreter, JIT, assembler, disassembler."""
