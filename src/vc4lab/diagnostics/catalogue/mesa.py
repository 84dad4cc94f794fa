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
        "This part of the OpenGL driver does not exist yet: draws are left out (and occlusion "
        "queries count 0), so that pictures show only what was cleared, copied and uploaded. "
        "Commands, state, resources, transfers, clears, copies and blits work, and --trace gallium "
        "shows all of them.",
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
]
