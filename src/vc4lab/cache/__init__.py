"""The folder of what vc4lab keeps for the next start: where it is, what of it is trusted, its size.

Compiled code, downloaded trees, roots and saved states are all below one folder, under one rule
(`trust.py`) and one bound (`contents.py`).
"""
