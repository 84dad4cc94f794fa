"""`python -m vc4lab` is the `vc4lab` command."""

from vc4lab.cli.start import run

run()
