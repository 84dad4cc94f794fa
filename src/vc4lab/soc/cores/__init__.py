"""Processor cores: the engine, exceptions, HYP mode, code that is trapped."""
