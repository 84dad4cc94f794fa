"""Kernels written in Python: types, and what a kernel calls. `qpu_kernel` makes one of a function."""

from vc4lab.kernels.python.decorator import PythonKernel as PythonKernel
from vc4lab.kernels.python.decorator import qpu_function as qpu_function
from vc4lab.kernels.python.decorator import qpu_kernel as qpu_kernel
from vc4lab.kernels.python.functions import *  # noqa: F403
from vc4lab.kernels.python.memory import Array as Array
from vc4lab.kernels.python.memory import InOut as InOut
from vc4lab.kernels.python.memory import Out as Out
from vc4lab.kernels.python.memory import Pointer as Pointer
from vc4lab.kernels.python.trace import KernelSourceError as KernelSourceError
from vc4lab.kernels.python.values import Bool as Bool
from vc4lab.kernels.python.values import Float as Float
from vc4lab.kernels.python.values import Int as Int
from vc4lab.kernels.python.values import Uint as Uint
from vc4lab.kernels.python.vpm import *  # noqa: F403
from vc4lab.simd.control import unroll as unroll
