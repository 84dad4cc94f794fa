"""The dialect of vc4asm: macros, functions, expressions over registers, joined instructions."""
