/* The triangle of ../triangle in GL mode: coordinate shader for the binner, vertex shader for
 * drawing, and two attribute streams, positions and colours. */
#include "mailbox.h"
#include "shader.h"
#include "v3d.h"

#define WIDTH 640u
#define HEIGHT 480u

/* Clip coordinates: x and y from -1 to 1, y upward. */
static const float positions[3][3] __attribute__((aligned(16))) = {
    {0.0f, 0.75f, 0.0f},
    {-0.625f, -0.75f, 0.0f},
    {0.625f, -0.75f, 0.0f},
};

static const uint8_t colours[3][4] __attribute__((aligned(16))) = {
    {255, 0, 0, 255},
    {0, 255, 0, 255},
    {0, 0, 255, 255},
};

/* Pixels count downward, so y changes its sign. */
static const float uniforms[2] __attribute__((aligned(16))) = {
    WIDTH * 16 / 2,
    -(float)(HEIGHT * 16 / 2),
};

static uint8_t shader_record[64] __attribute__((aligned(16)));
static uint8_t binning_memory[1024], rendering_memory[4096];

static void put_attribute(struct list *list, const void *base, uint32_t bytes,
                          uint32_t vertex_offset, uint32_t coordinate_offset)
{
    put_u32(list, bus_address(base));
    put_u8(list, bytes - 1);
    put_u8(list, bytes); /* stride: packed */
    put_u8(list, vertex_offset);
    put_u8(list, coordinate_offset);
}

static void put_shader(struct list *list, uint32_t attributes, uint32_t attribute_bytes,
                       uint32_t code)
{
    put_u16(list, 0); /* number of uniforms: not used */
    put_u8(list, attributes);
    put_u8(list, attribute_bytes);
    put_u32(list, bus_address(&shader[code / 4]));
    put_u32(list, bus_address(uniforms));
}

static void build_shader_record(void)
{
    enum { POSITION = 1 << 0, COLOUR = 1 << 1, UNUSED = 0xff };
    struct list list;

    list_reset(&list, shader_record, sizeof shader_record);
    put_u16(&list, SHADER_SINGLE_THREADED | SHADER_CLIPPING);
    put_u8(&list, 0);
    put_u8(&list, 3); /* varyings */
    put_u32(&list, bus_address(&shader[SHADER_FRAGMENT / 4]));
    put_u32(&list, bus_address(uniforms));
    put_shader(&list, POSITION | COLOUR, 16, SHADER_VERTEX);
    put_shader(&list, POSITION, 12, SHADER_COORDINATE);
    put_attribute(&list, positions, 12, 0, 0);
    put_attribute(&list, colours, 4, 12, UNUSED);
}

void main(void)
{
    uart_start();
    print_line("vertex_shader: GL mode, two attribute streams");
    v3d_start();
    struct framebuffer fb = framebuffer_open(WIDTH, HEIGHT, 1);
    struct target target = {framebuffer_page(&fb, 0), WIDTH, HEIGHT, 0xff401a10};
    build_shader_record();

    struct list binning, rendering;
    list_reset(&binning, binning_memory, sizeof binning_memory);
    binning_begin(&binning, &target, ENABLE_FORWARD_FACING | ENABLE_REVERSE_FACING | DEPTH_ALWAYS);
    binning_clipper(&binning, uniforms[0], uniforms[1]);
    binning_gl_shader(&binning, shader_record, 2);
    binning_vertices(&binning, TRIANGLES, 3, 0);
    binning_end(&binning);
    list_reset(&rendering, rendering_memory, sizeof rendering_memory);
    rendering_list(&rendering, &target);

    v3d_draw(&binning, &rendering);
    print_line("done");
    halt();
}
