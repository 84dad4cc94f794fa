"""What a client's context consists of: objects, bindings, the state of a draw."""
