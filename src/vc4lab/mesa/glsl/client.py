"""Links programs with Mesa's OpenGL: a process of its own, run as a file, with the standard library alone.

    python -I -S client.py JOB ANSWER

JOB is JSON: `{"api": "es" or "gl", "programs": [[vertex, fragment], …]}`, both as GLSL text. ANSWER
gets a line of JSON for each program as soon as it is linked, `{"logs": {"vertex": …, "fragment": …,
"link": …}, "linked": …}`, and before them one with what Mesa is. After program N the frame buffer is
cleared to the colour of N (`colour_of`), which the server sees in the stream after N's shaders.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
from typing import Any

SURFACELESS, EXTENSION = 0x31DD, 0x3055
PBUFFER, ES2, DESKTOP = 1, 4, 8
APIS = {"es": (0x30A0, ES2), "gl": (0x30A2, DESKTOP)}
"""The numbers of each API in eglBindAPI, and its bit in a configuration."""
VERTEX, FRAGMENT = 0x8B31, 0x8B30
COMPILED, LINKED, LOG_LENGTH = 0x8B81, 0x8B82, 0x8B84
COLOUR = 0x4000
MOST_SECONDS, MOST_BYTES = 120, 4 << 30
"""Seconds of CPU time, and bytes of memory: macros of a shader may unfold without end."""
STEP = 1 << 10
"""Colours that a component tells apart: fractions that a float holds as they are."""


def colour_of(number: int) -> tuple[float, float]:
    """Red and green that say that program `number` is linked."""
    return number % STEP / STEP, number // STEP / STEP


def number_of(red: float, green: float) -> int:
    """The program that a colour stands for."""
    return round(red * STEP) + round(green * STEP) * STEP


class Failed(Exception):  # noqa: N818 - reported as it is
    """There is no context; the text says which step failed."""


class Context:
    """An OpenGL context without a window. Raises Failed, OSError where there is no libEGL."""

    def __init__(self, api: str) -> None:
        egl = self._egl = ctypes.CDLL("libEGL.so.1")
        for name in (
            "eglGetProcAddress", "eglGetDisplay", "eglChooseConfig", "eglCreateContext",
            "eglCreatePbufferSurface",
        ):  # fmt: skip
            getattr(egl, name).restype = ctypes.c_void_p
        number, bit = APIS[api]
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
        of_platform = egl.eglGetProcAddress(b"eglGetPlatformDisplayEXT")
        display = ctypes.c_void_p(kind(of_platform)(SURFACELESS, None, None) if of_platform else None)
        self._check(display.value and egl.eglInitialize(display, None, None), "eglInitialize")
        wanted = (ctypes.c_int * 7)(0x3033, PBUFFER, 0x3040, bit, 0x3024, 8, 0x3038)
        config, count = ctypes.c_void_p(), ctypes.c_int()
        egl.eglChooseConfig(display, wanted, ctypes.byref(config), 1, ctypes.byref(count))
        self._check(count.value, "eglChooseConfig")
        self._check(egl.eglBindAPI(number), "eglBindAPI")
        version = (ctypes.c_int * 3)(0x3098, 2, 0x3038)
        context = ctypes.c_void_p(
            egl.eglCreateContext(display, config, None, version if api == "es" else None)
        )
        size = (ctypes.c_int * 5)(0x3057, 16, 0x3056, 16, 0x3038)
        surface = ctypes.c_void_p(egl.eglCreatePbufferSurface(display, config, size))
        self._check(context.value and surface.value, "eglCreateContext")
        self._check(egl.eglMakeCurrent(display, surface, surface, context), "eglMakeCurrent")

    @staticmethod
    def _check(value: object, step: str) -> None:
        if not value:
            raise Failed(step)

    def call(self, name: str, *words: Any, gives: Any = None) -> Any:
        """A function of OpenGL; floats of Python are floats of C, whole numbers ints."""
        address = self._egl.eglGetProcAddress(name.encode())
        self._check(address, name)
        kinds = [ctypes.c_float if isinstance(word, float) else None for word in words]
        function = ctypes.CFUNCTYPE(gives)(address)
        return function(
            *(word if kind is None else kind(word) for word, kind in zip(words, kinds, strict=True))
        )

    def log(self, kind: str, number: int) -> str:
        """Return Mesa's info log of a Shader or a Program."""
        length = ctypes.c_int()
        self.call(f"glGet{kind}iv", number, LOG_LENGTH, ctypes.byref(length))
        text = ctypes.create_string_buffer(max(length.value, 1))
        self.call(f"glGet{kind}InfoLog", number, len(text), None, text)
        return text.value.decode("utf-8", "replace")

    def is_set(self, kind: str, number: int, what: int) -> bool:
        """Whether a Shader is compiled, a Program linked."""
        found = ctypes.c_int()
        self.call(f"glGet{kind}iv", number, what, ctypes.byref(found))
        return bool(found.value)


def link(context: Context, vertex: str, fragment: str) -> dict[str, Any]:
    """Compile both, and link them."""
    program = context.call("glCreateProgram", gives=ctypes.c_uint)
    logs: dict[str, str] = {}
    good = True
    for stage, kind, text in (("vertex", VERTEX, vertex), ("fragment", FRAGMENT, fragment)):
        shader = context.call("glCreateShader", kind, gives=ctypes.c_uint)
        source = ctypes.c_char_p(text.encode())
        context.call("glShaderSource", shader, 1, ctypes.byref(source), None)
        context.call("glCompileShader", shader)
        logs[stage] = context.log("Shader", shader)
        good &= context.is_set("Shader", shader, COMPILED)
        context.call("glAttachShader", program, shader)
        context.call("glDeleteShader", shader)
    if good:
        context.call("glLinkProgram", program)
        logs["link"] = context.log("Program", program)
        good = context.is_set("Program", program, LINKED)
    context.call("glDeleteProgram", program)
    return {"logs": logs, "linked": good}


def main(job_path: str, answer_path: str) -> None:
    """Do the job, and answer line by line."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    with open(job_path, encoding="utf-8") as file:
        job = json.load(file)
    with open(answer_path, "w", encoding="utf-8", buffering=1) as answer:
        try:
            context = Context(job["api"])
            name = context.call("glGetString", 0x1F02, gives=ctypes.c_char_p)
        except (Failed, OSError) as error:
            answer.write(json.dumps({"failed": str(error)}) + "\n")
            return
        answer.write(json.dumps({"mesa": (name or b"").decode()}) + "\n")
        for number, (vertex, fragment) in enumerate(job["programs"]):
            answer.write(json.dumps(link(context, vertex, fragment)) + "\n")
            red, green = colour_of(number)
            context.call("glClearColor", red, green, 0.0, 1.0)
            context.call("glClear", COLOUR)
        context.call("glFinish")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
