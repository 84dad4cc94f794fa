"""A chip of several clusters: the global scheduler that deals work out to them."""
