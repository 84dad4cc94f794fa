"""`python -m vc4lab` is the `vc4lab` command."""

from vc4lab.cli.main import run

run()
