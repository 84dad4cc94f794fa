"""Primitive tile binner: clipping, tiles, list writing."""
