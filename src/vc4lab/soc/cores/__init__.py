"""Processor cores: the engine, exceptions, HYP mode, whose turn it is and who waits."""
