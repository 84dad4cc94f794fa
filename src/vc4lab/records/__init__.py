"""Control-list, shader and texture records, declared once."""
