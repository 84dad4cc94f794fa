"""Why a frame has no picture: the stage that dropped its primitives, and the record that decides it."""
