"""Accesses of a machine's CPUs where nothing is."""

from vc4lab.soc.machine import Machine


def lost_accesses(machine: Machine) -> int:
    """Loads and stores so far that found nothing."""
    return sum(nothing.accesses for nothing in machine.address_space.nothing)
