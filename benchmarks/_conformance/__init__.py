"""piglit and dEQP-GLES2 through Mesa's vc4 on the virtual device, compared with real boards.

``make conformance VC4_DRIVER=DIR DEQP=DIR``. Neither the suites nor the driver are part of this
repository: piglit is Debian's package, dEQP-GLES2 is built from its public source, the driver is
Mesa's. What real Raspberry Pi 3 boards do is in ``data/``.
"""
