"""The modules that take part in user programs, a room for each hardware block."""
