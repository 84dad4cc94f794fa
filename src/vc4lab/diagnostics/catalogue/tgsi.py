"""Messages about shaders in Mesa's text form, TGSI."""

from vc4lab.diagnostics.entry import Entry

SOURCE = "Mesa 22.3, src/gallium/auxiliary/tgsi; docs/gl.md"

ENTRIES = [
    Entry(
        "TGSI-001",
        "Not TGSI",
        "A line of a shader's text does not have the form that Mesa prints. The message has the "
        "line and the column.",
        SOURCE,
        "The first line is VERT or FRAG; then declarations, immediates, numbered instructions.",
    ),
    Entry(
        "TGSI-002",
        "No such operation",
        "An instruction's name is no operation of TGSI, or one that Mesa does not use for OpenGL "
        "ES 2.0 and OpenGL 2.0: 64-bit numbers, memory, images.",
        SOURCE,
        "The message names similar operations.",
    ),
    Entry(
        "TGSI-003",
        "Operands do not fit the operation",
        "An instruction has too many or too few operands, writes a register that cannot be "
        "written, or names no texture.",
        SOURCE,
        "src/vc4lab/driver/compiler/tgsi/operations.py has the operands of each operation.",
    ),
    Entry(
        "TGSI-004",
        "Register not declared",
        "An instruction uses a register that no declaration has, or an array that is not there.",
        SOURCE,
        "Declare it: DCL TEMP[0..3].",
    ),
    Entry(
        "TGSI-005",
        "Control flow does not nest",
        "IF, ELSE, ENDIF, BGNLOOP, ENDLOOP, BRK and CONT do not nest, or END is missing.",
        SOURCE,
        "Each IF and UIF has one ENDIF, each BGNLOOP one ENDLOOP.",
    ),
    Entry(
        "TGSI-006",
        "Shader too large",
        "A shader has more lines, registers or nested blocks than a compiler may be asked for.",
        "src/vc4lab/driver/compiler/tgsi/program.py",
        "The limits are far above what Mesa makes of shaders for a VideoCore IV.",
    ),
    Entry(
        "TGSI-007",
        "Shader does not fit the QPU",
        "A shader needs more registers than a QPU has, or becomes too many instructions. There is "
        "no memory into which registers could be spilled.",
        "VideoCore IV 3D Architecture Reference Guide, QPU Register Address Map (p. 37)",
        "Compute less at the same time: fewer values that live across the whole shader.",
    ),
    Entry(
        "TGSI-008",
        "Vertex format without a conversion",
        "A vertex element has a format that vertex programs do not convert to floats.",
        "src/vc4lab/driver/compiler/lower/vertex.py",
        "Formats of 8, 16 and 32 bits with up to four components are converted.",
    ),
    Entry(
        "TGSI-009",
        "System value that is not there",
        "A shader reads a system value that the driver does not give to this stage. Vertex shaders "
        "get INSTANCEID and VERTEXID, fragment shaders POSITION, FACE and PCOORD.",
        "src/vc4lab/driver/compiler/lower/vertex.py, fragment.py",
        "Mesa writes such shaders only for extensions that are not announced: leave out overrides "
        "such as MESA_EXTENSION_OVERRIDE, or compute the value from a uniform.",
    ),
]
