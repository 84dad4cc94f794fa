"""A draw's state, vertices and programs, as the V3D reads them."""
