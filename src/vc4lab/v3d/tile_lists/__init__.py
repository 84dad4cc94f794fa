"""Reading tile lists."""
