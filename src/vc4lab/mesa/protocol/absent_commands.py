"""Commands that Mesa 22.3 sends only to a server with capabilities that ours has not.

They are declared so that a trace and a message can name them.
"""

from __future__ import annotations

from vc4lab.mesa.protocol.codes import Stage
from vc4lab.mesa.protocol.command import Command
from vc4lab.mesa.protocol.fields import array, bits, rest, word
from vc4lab.mesa.protocol.payload import Payload


class SetStreamoutTargets(Command, number=25, name="SET_STREAMOUT_TARGETS", needs="max_streamout_buffers"):
    """Where outputs of vertex shaders are written."""

    append_bitmask: int = word(0, hex=True)
    targets: tuple[int, ...] = rest(1, "u")


class SetRenderCondition(Command, number=26, name="SET_RENDER_CONDITION", needs="conditional_render"):
    """Draws only if a query counted something."""

    handle: int = word(0)
    condition: int = word(1)
    mode: int = word(2)


class SetUniformBuffer(Command, number=27, name="SET_UNIFORM_BUFFER", needs="ubo"):
    """A buffer with uniforms."""

    stage: Stage = word(0, enum=Stage)
    index: int = word(1)
    offset: int = word(2)
    length: int = word(3)
    resource: int = word(4)


class SetTessState(Command, number=32, name="SET_TESS_STATE", needs="has_tessellation_shaders"):
    """Default levels of tessellation."""

    outer: tuple[float, ...] = array(0, "f", 4)
    inner: tuple[float, ...] = array(4, "f", 2)


class SetMinSamples(Command, number=33, name="SET_MIN_SAMPLES", needs="SET_MIN_SAMPLES"):
    """How often a fragment shader runs for each pixel."""

    min_samples: int = word(0)


class ShaderBuffer(Payload):
    """A buffer that shaders write (pipe_shader_buffer)."""

    offset: int = word(0)
    length: int = word(1)
    resource: int = word(2)


class SetShaderBuffers(Command, number=34, name="SET_SHADER_BUFFERS", needs="max_shader_buffer_frag_compute"):
    """Buffers that shaders write."""

    stage: Stage = word(0, enum=Stage)
    start_slot: int = word(1)
    buffers: tuple[ShaderBuffer, ...] = rest(2, ShaderBuffer)


class ShaderImage(Payload):
    """A texture that shaders write (pipe_image_view)."""

    format: int = word(0)
    access: int = word(1)
    layer_offset: int = word(2)
    level_size: int = word(3)
    resource: int = word(4)


class SetShaderImages(Command, number=35, name="SET_SHADER_IMAGES", needs="max_shader_image_frag_compute"):
    """Textures that shaders write."""

    stage: Stage = word(0, enum=Stage)
    start_slot: int = word(1)
    images: tuple[ShaderImage, ...] = rest(2, ShaderImage)


class MemoryBarrier(Command, number=36, name="MEMORY_BARRIER", needs="MEMORY_BARRIER"):
    """Later reads see earlier writes of shaders."""

    flags: int = word(0, hex=True)


class LaunchGrid(Command, number=37, name="LAUNCH_GRID", needs="COMPUTE_SHADER"):
    """Runs a compute shader."""

    block: tuple[int, ...] = array(0, "u", 3)
    grid: tuple[int, ...] = array(3, "u", 3)
    indirect: int = word(6, doc="resource")
    indirect_offset: int = word(7)


class SetFramebufferStateNoAttach(
    Command, number=38, name="SET_FRAMEBUFFER_STATE_NO_ATTACH", needs="FB_NO_ATTACH"
):
    """The size of a frame buffer without surfaces."""

    width: int = bits(0, 15, 0)
    height: int = bits(0, 31, 16)
    layers: int = bits(1, 15, 0)
    samples: int = bits(1, 23, 16)


class TextureBarrier(Command, number=39, name="TEXTURE_BARRIER", needs="TEXTURE_BARRIER"):
    """Later samples see earlier pixels."""

    flags: int = word(0, hex=True)


class SetAtomicBuffers(Command, number=40, name="SET_ATOMIC_BUFFERS", needs="max_atomic_counter_buffers"):
    """Buffers with atomic counters."""

    start_slot: int = word(0)
    buffers: tuple[ShaderBuffer, ...] = rest(1, ShaderBuffer)


class SetDebugFlags(Command, number=41, name="SET_DEBUG_FLAGS", needs="GUEST_MAY_INIT_LOG"):
    """What the server is to print: text."""

    flags: bytes = rest(0, "s")


class GetQueryResultQbo(Command, number=42, name="GET_QUERY_RESULT_QBO", needs="QBO"):
    """Asks for a result in a buffer of the program."""

    handle: int = word(0)
    resource: int = word(1)
    wait: int = word(2)
    result_type: int = word(3)
    offset: int = word(4)
    index: int = word(5)


class SetTweaks(Command, number=46, name="SET_TWEAKS", needs="APP_TWEAK_SUPPORT"):
    """A setting for one application."""

    id: int = word(0)
    value: int = word(1)


class ClearTexture(Command, number=47, name="CLEAR_TEXTURE", needs="CLEAR_TEXTURE"):
    """Fills a box of a texture."""

    resource: int = word(0)
    level: int = word(1)
    x: int = word(2)
    y: int = word(3)
    z: int = word(4)
    width: int = word(5)
    height: int = word(6)
    depth: int = word(7)
    data: tuple[int, ...] = array(8, "u", 4)


class PipeResourceCreate(Command, number=48, name="PIPE_RESOURCE_CREATE", needs="ARB_BUFFER_STORAGE"):
    """A resource in memory of the host."""

    target: int = word(0)
    format: int = word(1)
    bind: int = word(2, hex=True)
    width: int = word(3)
    height: int = word(4)
    depth: int = word(5)
    array_size: int = word(6)
    last_level: int = word(7)
    nr_samples: int = word(8)
    flags: int = word(9, hex=True)
    blob_id: int = word(10)


class Plane(Payload):
    """A plane of a resource from elsewhere."""

    stride: int = word(0)
    offset: int = word(1)


class PipeResourceSetType(Command, number=49, name="PIPE_RESOURCE_SET_TYPE", needs="UNTYPED_RESOURCE"):
    """What a resource from elsewhere is."""

    resource: int = word(0)
    format: int = word(1)
    bind: int = word(2, hex=True)
    width: int = word(3)
    height: int = word(4)
    usage: int = word(5)
    modifier: tuple[int, ...] = array(6, "u", 2)
    planes: tuple[Plane, ...] = rest(8, Plane)


class GetMemoryInfo(Command, number=50, name="GET_MEMORY_INFO", needs="MEMINFO"):
    """Asks for the size of the GPU's memory."""

    resource: int = word(0)


class EmitStringMarker(Command, number=51, name="EMIT_STRING_MARKER", needs="STRING_MARKER"):
    """A text of the program for traces."""

    length: int = word(0)
    message: bytes = rest(1, "s")


class CreateVideoCodec(Command, number=53, name="CREATE_VIDEO_CODEC", needs="num_video_caps"):
    """A video decoder."""

    handle: int = word(0)
    profile: int = word(1)
    entrypoint: int = word(2)
    chroma_format: int = word(3)
    level: int = word(4)
    width: int = word(5)
    height: int = word(6)


class DestroyVideoCodec(Command, number=54, name="DESTROY_VIDEO_CODEC", needs="num_video_caps"):
    """Ends a video decoder."""

    handle: int = word(0)


class CreateVideoBuffer(Command, number=55, name="CREATE_VIDEO_BUFFER", needs="num_video_caps"):
    """A picture of a video."""

    handle: int = word(0)
    format: int = word(1)
    width: int = word(2)
    height: int = word(3)
    planes: tuple[int, ...] = rest(4, "u")


class DestroyVideoBuffer(Command, number=56, name="DESTROY_VIDEO_BUFFER", needs="num_video_caps"):
    """Ends a picture of a video."""

    handle: int = word(0)


class BeginFrame(Command, number=57, name="BEGIN_FRAME", needs="num_video_caps"):
    """A frame of a video begins."""

    codec: int = word(0)
    buffer: int = word(1)


class DecodeBitstream(Command, number=59, name="DECODE_BITSTREAM", needs="num_video_caps"):
    """Data of a frame."""

    codec: int = word(0)
    buffer: int = word(1)
    description: int = word(2, doc="resource")
    bitstream: int = word(3, doc="resource")
    size_of_bitstream: int = word(4)


class EndFrame(Command, number=61, name="END_FRAME", needs="num_video_caps"):
    """A frame of a video ends."""

    codec: int = word(0)
    buffer: int = word(1)
