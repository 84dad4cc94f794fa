"""Compares captured frames: draws, states, programs, lists and pictures, by what they mean."""
