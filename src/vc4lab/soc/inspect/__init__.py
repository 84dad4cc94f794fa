"""Looks at a whole board: names of addresses, guard zones, hints, hangs."""
