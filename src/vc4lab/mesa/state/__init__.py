"""Holds a client's context: objects, bindings, the state of a draw."""
