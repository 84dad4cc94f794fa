"""How much a client may ask for. Mesa stays far below; what is above comes from no GL program."""

MESSAGE_WORDS = 1 << 22
"""Words of a message: 16 MiB of commands."""
TRANSFER_BYTES = 1 << 28
"""Bytes of a transfer."""
RESOURCE_BYTES = 1 << 28
"""Bytes of a resource, and of its staging memory."""
CLIENT_BYTES = 1 << 31
"""Bytes of all resources of a client, and of all their staging memory."""
RESOURCES = 1 << 16
"""Resources of a client."""
SIZE = 1 << 13
"""Width and height of a texture. A VideoCore IV has 2048; windows of a large screen have more."""
SAMPLES = 4
"""Samples of a pixel. A client that asks for two gets four."""
OBJECTS = 1 << 16
"""Objects of a context."""
CONTEXTS = 256
"""Contexts of a client."""
CLIENTS = 64
"""Clients of a server at a time; each has a socket, and a descriptor for each resource."""
SHADER_BYTES = 1 << 22
"""Bytes of a shader's text."""
NAME_BYTES = 4096
"""Bytes of a program's name."""
VERTEX_ELEMENTS = 32
VERTEX_BUFFERS = 32
SAMPLERS = 32
VIEWPORTS = 16
COLOR_BUFFERS = 8
CONSTANT_WORDS = 1 << 16
CONSTANT_BUFFERS = 16
