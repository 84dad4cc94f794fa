"""Control-list, shader and texture records, declared once: parse, build, print derive from it."""
