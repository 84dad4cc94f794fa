"""vc4lab: the Raspberry Pi's VideoCore IV GPU as software."""

__version__ = "0.1.0"
