"""The Python examples as modules."""

import importlib.util
import sys
from types import ModuleType

import vc4lab

FOLDER = vc4lab.examples() / "qpu" / "python"


def example(name: str) -> ModuleType:
    """The module of an example."""
    known = f"example_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return sys.modules[known]
