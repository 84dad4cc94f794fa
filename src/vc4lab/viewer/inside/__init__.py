"""The debugger for captures in a browser: `vc4lab view`."""
