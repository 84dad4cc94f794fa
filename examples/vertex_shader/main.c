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

static void build_shader_record(void)
{
    static const struct attribute attributes[] = {
        {positions, 12, 12, 0, 0},
        {colours, 4, 4, 12, NOT_READ},
    };
    struct program fragment = {&shader[SHADER_FRAGMENT / 4], uniforms};
    struct program vertex = {&shader[SHADER_VERTEX / 4], uniforms};
    struct program coordinate = {&shader[SHADER_COORDINATE / 4], uniforms};
    struct list list;

    list_reset(&list, shader_record, sizeof shader_record);
    gl_shader_record(&list, SHADER_SINGLE_THREADED | SHADER_CLIPPING, 3, fragment, vertex,
                     coordinate, attributes, 2);
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
