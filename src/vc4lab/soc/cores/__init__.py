"""Processor cores: the engine, exceptions, HYP mode, turns and waits."""
