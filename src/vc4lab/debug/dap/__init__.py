"""The Debug Adapter Protocol: VS Code, Neovim and others step QPU programs."""

from vc4lab.debug.dap.server import Server as Server
