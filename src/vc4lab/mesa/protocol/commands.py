"""All commands of the stream: `COMMANDS` by number, and where each is declared.

Those that Mesa 22.3 sends only to a server with capabilities that ours has not are rows of a table: they
are declared so that a trace and a message can name them.
"""

from __future__ import annotations

import types
from typing import Any

from vc4lab.mesa.protocol import state_commands, work_commands
from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.command import COMMANDS, Command
from vc4lab.mesa.protocol.fields import array, bits, rest, word
from vc4lab.mesa.protocol.payload import Payload

MODULES = (state_commands, work_commands)
"""Importing them declares the commands, besides those of `command.py` and of this file."""

__all__ = ["COMMANDS", "MODULES"]


class ShaderBuffer(Payload):
    """A buffer that shaders write (pipe_shader_buffer)."""

    offset: int = word(0)
    length: int = word(1)
    resource: int = word(2)


class ShaderImage(Payload):
    """A texture that shaders write (pipe_image_view)."""

    format: int = word(0)
    access: int = word(1)
    layer_offset: int = word(2)
    level_size: int = word(3)
    resource: int = word(4)


class Plane(Payload):
    """A plane of a resource from elsewhere."""

    stride: int = word(0)
    offset: int = word(1)


_ITEMS: dict[str, Any] = {"buffers": ShaderBuffer, "images": ShaderImage, "planes": Plane}
_ABSENT = (
    (25, "SET_STREAMOUT_TARGETS", "max_streamout_buffers", "append_bitmask:x targets:*u"),
    (26, "SET_RENDER_CONDITION", "conditional_render", "handle condition mode"),
    (27, "SET_UNIFORM_BUFFER", "ubo", "stage:stage index offset length resource"),
    (32, "SET_TESS_STATE", "has_tessellation_shaders", "outer:4f inner:2f"),
    (33, "SET_MIN_SAMPLES", "SET_MIN_SAMPLES", "min_samples"),
    (34, "SET_SHADER_BUFFERS", "max_shader_buffer_frag_compute", "stage:stage start_slot buffers:*buffers"),
    (35, "SET_SHADER_IMAGES", "max_shader_image_frag_compute", "stage:stage start_slot images:*images"),
    (36, "MEMORY_BARRIER", "MEMORY_BARRIER", "flags:x"),
    (37, "LAUNCH_GRID", "COMPUTE_SHADER", "block:3u grid:3u indirect:resource indirect_offset"),
    (38, "SET_FRAMEBUFFER_STATE_NO_ATTACH", "FB_NO_ATTACH",
     "width:15.0 height:31.16 layers:15.0 samples:23.16"),
    (39, "TEXTURE_BARRIER", "TEXTURE_BARRIER", "flags:x"),
    (40, "SET_ATOMIC_BUFFERS", "max_atomic_counter_buffers", "start_slot buffers:*buffers"),
    (41, "SET_DEBUG_FLAGS", "GUEST_MAY_INIT_LOG", "flags:*s"),
    (42, "GET_QUERY_RESULT_QBO", "QBO", "handle resource wait result_type offset index"),
    (46, "SET_TWEAKS", "APP_TWEAK_SUPPORT", "id value"),
    (47, "CLEAR_TEXTURE", "CLEAR_TEXTURE", "resource level x y z width height depth data:4u"),
    (48, "PIPE_RESOURCE_CREATE", "ARB_BUFFER_STORAGE",
     "target format bind:x width height depth array_size last_level nr_samples flags:x blob_id"),
    (49, "PIPE_RESOURCE_SET_TYPE", "UNTYPED_RESOURCE",
     "resource format bind:x width height usage modifier:2u planes:*planes"),
    (50, "GET_MEMORY_INFO", "MEMINFO", "resource"),
    (51, "EMIT_STRING_MARKER", "STRING_MARKER", "length message:*s"),
    (53, "CREATE_VIDEO_CODEC", "num_video_caps",
     "handle profile entrypoint chroma_format level width height"),
    (54, "DESTROY_VIDEO_CODEC", "num_video_caps", "handle"),
    (55, "CREATE_VIDEO_BUFFER", "num_video_caps", "handle format width height planes:*u"),
    (56, "DESTROY_VIDEO_BUFFER", "num_video_caps", "handle"),
    (57, "BEGIN_FRAME", "num_video_caps", "codec buffer"),
    (59, "DECODE_BITSTREAM", "num_video_caps",
     "codec buffer description:resource bitstream:resource size_of_bitstream"),
    (61, "END_FRAME", "num_video_caps", "codec buffer"),
)  # fmt: skip
"""Number, name, needs, and the fields in the order of their words. After a field's name: x, printed in
hexadecimal; stage or resource, which the number names; 3u, so many words (f: floats); *, items up to the end
(s: bytes); 15.0, the bits of a word that it shares with the next field.
"""


def _declare(number: int, name: str, needs: str, fields: str) -> type[Command]:
    members: dict[str, Any] = {"__module__": __name__, "__annotations__": {}}
    at = 0
    for field in fields.split():
        key, _, kind = field.partition(":")
        step = 1
        if kind.startswith("*"):
            made = rest(at, _ITEMS.get(kind[1:], kind[1:]))
        elif "." in kind:
            high, low = map(int, kind.split("."))
            made, step = bits(at, high, low), int(low > 0)
        elif kind[:1].isdigit():
            step = int(kind[:-1])
            made = array(at, kind[-1], step)
        else:
            made = word(at, enum=Stage if kind == "stage" else None, hex=kind == "x",
                        doc="resource" if kind == "resource" else "")  # fmt: skip
        members[key], members["__annotations__"][key] = made, Any
        at += step
    title = name.title().replace("_", "")
    keywords = {"number": number, "name": name, "needs": needs}
    return types.new_class(title, (Command,), keywords, lambda space: space.update(members))


for _row in _ABSENT:
    _declare(*_row)
