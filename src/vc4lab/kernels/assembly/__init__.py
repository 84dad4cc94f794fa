"""Kernels instruction by instruction: registers, operations, labels, and `qpu` to make a kernel.

Everything is meant to be imported: `from vc4lab.kernels.assembly import *`.
"""

from vc4lab.kernels.assembly.decorator import AssemblyKernel as AssemblyKernel
from vc4lab.kernels.assembly.decorator import qpu as qpu
from vc4lab.kernels.assembly.names import NAMES as _NAMES
from vc4lab.kernels.assembly.registers import Register as Register

globals().update(_NAMES)
__all__ = ["qpu", *_NAMES]
