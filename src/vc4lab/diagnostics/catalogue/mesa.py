"""Messages about OpenGL programs: what Mesa sends, and what is not built yet."""

from vc4lab.diagnostics.entry import Entry, Severity

VTEST = "docs/virgl.md; Mesa 22.3, src/virtio/vtest/vtest_protocol.h"
VIRGL = "docs/virgl.md; Mesa 22.3, src/virtio/virtio-gpu/virgl_protocol.h"

ENTRIES = [
    Entry(
        "GL-001",
        "Message not understood",
        "A client sent a message whose number or length no version of vtest has. Where the next "
        "message begins is not known, so that the connection is closed; Mesa then ends the program "
        "with 'lost connection to rendering server'.",
        VTEST,
        "Use Mesa's virpipe driver, such as that of Debian 12 (Mesa 22.3); a newer one may speak "
        "another protocol.",
    ),
    Entry(
        "GL-002",
        "Command malformed",
        "A command of the stream has a number, a length or a value that its declaration does not "
        "allow. It is left out; the commands after it are executed.",
        VIRGL,
        "The message names the command, its place in words, and the field.",
    ),
    Entry(
        "GL-003",
        "Stream cut off",
        "The last command of a submit has more words than are left. It is left out.",
        VIRGL,
        "The upper half of a command's first word is the number of the words that follow.",
    ),
    Entry(
        "GL-004",
        "No such object",
        "A command names an object, a resource, a shader, a query or a context that was never "
        "created, was destroyed, or is of another kind. The command is left out.",
        VIRGL,
        "Create it first; handles belong to one context, those of resources to the client.",
    ),
    Entry(
        "GL-005",
        "Outside of a resource",
        "A box, a level, a layer or an offset is not inside of the resource, or of the memory that "
        "it shares with the client. The command is left out; nothing is read or written.",
        VIRGL,
        "The message names the resource, its size and the box.",
    ),
    Entry(
        "GL-006",
        "Too large, or too many",
        "A client asks for more than any program needs: the size of a resource, of a transfer or a "
        "shader, the number of objects, contexts or clients. If the client waits for a resource, "
        "its connection is closed.",
        "src/vc4lab/mesa/protocol/limits.py",
        "The limits are far above what Mesa asks for; if a real program meets one, raise it there.",
    ),
    Entry(
        "GL-007",
        "Feature that was not announced",
        "A command needs a capability that the server has not: stream output, geometry and compute "
        "shaders, multisampling. A VideoCore IV has none of them. The command is left out.",
        "docs/virgl.md, capabilities",
        "Mesa does not send such commands; check who does.",
    ),
    Entry(
        "GL-008",
        "Client ended inside of a message",
        "The connection was closed after a part of a message: the program crashed or was killed.",
        VTEST,
        "Look at the program's own output.",
        Severity.WARNING,
    ),
    Entry(
        "GL-010",
        "Not built yet",
        "This part of the OpenGL driver does not exist yet: a store without a GPU draws nothing.",
        "docs/gl.md",
        "For pictures, use Mesa's own driver for the chip: vc4lab drm -- PROGRAM.",
    ),
    Entry(
        "GL-011",
        "The program did not use the server",
        "The program ended without a connection: it uses no OpenGL, its Mesa has no virpipe driver "
        "(Debian 12's Mesa has one, in libgl1-mesa-dri), or it found no display.",
        "docs/gl.md",
        "Try es2_info or eglinfo in place of the program; look at its output with "
        "LIBGL_DEBUG=verbose EGL_LOG_LEVEL=debug.",
        Severity.WARNING,
    ),
    Entry(
        "GL-012",
        "Conversion not built",
        "A clear or a blit is between formats that the store in software cannot convert: floats, "
        "signed and compressed texels, depth to another layout. It is left out.",
        "src/vc4lab/mesa/store/pixels.py",
        "With the announced formats Mesa does not ask for it.",
    ),
    Entry(
        "GL-013",
        "No private /tmp",
        "Mesa looks for the server at /tmp/.virgl_test, a path that cannot be changed. The program "
        "is started with a /tmp of its own, in a mount namespace; this host does not allow that "
        "(user namespaces are switched off, or a container forbids mounts).",
        "unshare(2), user_namespaces(7)",
        "Allow it (sysctl kernel.unprivileged_userns_clone=1, docker run --privileged), or use "
        "--shared-tmp, with which one run per machine can work.",
    ),
    Entry(
        "GL-014",
        "Frame abandoned",
        "The control lists of a frame never ended: a shader that loops for ever, or lists that "
        "wait for memory. On a board the GPU hangs there and the kernel resets it; so does the "
        "driver. What the frame would have drawn is missing.",
        "src/vc4lab/driver/gpu/runner.py",
        "The message names the frame, its draws, and what has no end.",
    ),
    Entry(
        "GL-015",
        "Draw that cannot be drawn",
        "A draw or a clear lacks state (a shader, a viewport, a vertex buffer), or its surfaces "
        "are none that the tile buffer can load and store: colours of 8888 and 565, depth of 24 "
        "bits, at most 2048 pixels a side, colour and depth of the same size. It is left out.",
        "docs/gl.md",
        "The message names frame, draw and surface.",
    ),
    Entry(
        "GL-016",
        "Shader not compiled",
        "The compiler cannot make a QPU program of a shader: an operation that it does not have, "
        "or more registers than there are. Draws with it are left out.",
        "docs/gl.md",
        "The message names the draw, the shader and its line; --trace gallium prints the text.",
    ),
    Entry(
        "GL-017",
        "Queue malformed",
        "The command queue in GPU memory has a command, a block of state or a resource that does "
        "not exist. The command is left out; without a next one the rest of the queue is.",
        "src/vc4lab/driver/commands/commands.py",
        "Only a queue that was edited or damaged can have that; the message names the place.",
    ),
    Entry(
        "GL-018",
        "Not on this chip",
        "The program uses something that a VideoCore IV cannot do, and that OpenGL allows to be "
        "left out: occlusion queries have counters of 0 bits (GL_QUERY_COUNTER_BITS) and count 0, "
        "lines are not stippled, and nothing is smoothed. Polygons as lines or points are made of "
        "lines and points here, each with its own flat colour. It is drawn without.",
        "docs/gl.md",
        "On the board it is the same with Mesa's own driver: a program must ask what there is.",
        Severity.WARNING,
    ),
]
