"""Primitive setup: vertices, edges, planes, coverage."""
