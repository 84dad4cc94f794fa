"""QPU programs as Python functions over numpy arrays."""

from vc4lab.kernels.interface import InterfaceError as InterfaceError
from vc4lab.kernels.kernel import Kernel as Kernel
from vc4lab.kernels.kernel import KernelError as KernelError
from vc4lab.kernels.kernel import KernelWarning as KernelWarning
