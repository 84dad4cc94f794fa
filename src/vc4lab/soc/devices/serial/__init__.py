"""The UARTs and the serial line."""
