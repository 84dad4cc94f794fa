"""A program for `vc4lab gl`: OpenGL ES without a window, by ctypes. Prints what it gets.

egl_clear.py [clear | upload | draw [VERTICES] | crash | exit N]
"""

import ctypes
import os
import sys
from typing import Any

SURFACELESS, PBUFFER, ES2, RGBA, UBYTE = 0x31DD, 1, 4, 0x1908, 0x1401


def connect() -> Any:
    """A context of OpenGL ES 2.0 with a pbuffer of 16x8 pixels."""
    egl = ctypes.CDLL("libEGL.so.1")
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    for name in ("eglChooseConfig", "eglCreateContext", "eglCreatePbufferSurface"):
        getattr(egl, name).restype = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    display = kind(egl.eglGetProcAddress(b"eglGetPlatformDisplayEXT"))(SURFACELESS, None, None)
    screen = ctypes.c_void_p(display)
    assert egl.eglInitialize(screen, None, None), "eglInitialize"
    attributes = (ctypes.c_int * 11)(
        *(0x3033, PBUFFER, 0x3040, ES2, 0x3024, 8, 0x3021, 8, 0x3025, 24), 0x3038
    )
    config, count = ctypes.c_void_p(), ctypes.c_int()
    egl.eglChooseConfig(screen, attributes, ctypes.byref(config), 1, ctypes.byref(count))
    assert count.value, "eglChooseConfig"
    assert egl.eglBindAPI(0x30A0), "eglBindAPI"
    version = (ctypes.c_int * 3)(0x3098, 2, 0x3038)
    context = ctypes.c_void_p(egl.eglCreateContext(screen, config, None, version))
    size = (ctypes.c_int * 5)(0x3057, 16, 0x3056, 8, 0x3038)
    surface = ctypes.c_void_p(egl.eglCreatePbufferSurface(screen, config, size))
    assert egl.eglMakeCurrent(screen, surface, surface, context), "eglMakeCurrent"
    gl = ctypes.CDLL("libGLESv2.so.2")
    gl.glGetString.restype = ctypes.c_char_p
    return gl


def pixel(gl: Any, x: int, y: int) -> list[int]:
    """One pixel of the frame buffer."""
    data = (ctypes.c_ubyte * 4)()
    gl.glReadPixels(x, y, 1, 1, RGBA, UBYTE, data)
    return list(data)


def upload(gl: Any) -> None:
    """A texture that is the frame buffer, so that its texels can be read."""
    names = (ctypes.c_uint * 1)(1)
    gl.glGenTextures(1, names)
    gl.glBindTexture(0x0DE1, names[0])
    texels = bytes((x * 16 if c == 0 else y * 32 if c == 1 else 255) for y in range(8)
                   for x in range(16) for c in range(4))  # fmt: skip
    gl.glTexImage2D(0x0DE1, 0, RGBA, 16, 8, 0, RGBA, UBYTE, texels)
    frame = (ctypes.c_uint * 1)(1)
    gl.glGenFramebuffers(1, frame)
    gl.glBindFramebuffer(0x8D40, frame[0])
    gl.glFramebufferTexture2D(0x8D40, 0x8CE0, 0x0DE1, names[0], 0)
    print("upload", pixel(gl, 3, 5))


def draw(gl: Any, count: int = 3) -> None:
    """Vertices of a buffer that has three of them, with a program of two lines."""
    program = gl.glCreateProgram()
    for kind, text in (
        (0x8B31, b"attribute vec4 p; void main() { gl_Position = p; }"),
        (0x8B30, b"precision mediump float; void main() { gl_FragColor = vec4(1, 0, 0, 1); }"),
    ):
        shader = gl.glCreateShader(kind)
        source = ctypes.c_char_p(text)
        gl.glShaderSource(shader, 1, ctypes.byref(source), None)
        gl.glCompileShader(shader)
        gl.glAttachShader(program, shader)
    gl.glLinkProgram(program)
    gl.glUseProgram(program)
    corners = (ctypes.c_float * 6)(-1, -1, 3, -1, -1, 3)
    names = (ctypes.c_uint * 1)()
    gl.glGenBuffers(1, names)
    gl.glBindBuffer(0x8892, names[0])
    gl.glBufferData(0x8892, ctypes.c_long(ctypes.sizeof(corners)), corners, 0x88E4)
    gl.glVertexAttribPointer(0, 2, 0x1406, 0, 0, None)
    gl.glEnableVertexAttribArray(0)
    gl.glDrawArrays(4, 0, count)
    print("draw", pixel(gl, 3, 5))


def main(words: list[str]) -> None:
    """What the words say."""
    if words[:1] == ["exit"]:
        sys.exit(int(words[1]))
    print(os.listdir("/tmp"), os.getcwd())
    gl = connect()
    print(gl.glGetString(0x1F01).decode(), "|", gl.glGetString(0x1F02).decode())
    if words[:1] == ["crash"]:
        os.abort()
    gl.glClearColor(*map(ctypes.c_float, (0.2, 0.4, 0.6, 1.0)))
    gl.glClear(0x4000)
    print("clear", pixel(gl, 3, 5))
    if words[:1] == ["upload"]:
        upload(gl)
    if words[:1] == ["draw"]:
        draw(gl, *map(int, words[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
