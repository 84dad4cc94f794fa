/* One triangle with a colour at each corner, in NV mode: the vertices are already where the vertex
 * shader would have put them, so the only GPU program is the fragment shader. */
#include "mailbox.h"
#include "shader.h"
#include "v3d.h"

#define WIDTH 640u
#define HEIGHT 480u

/* A shaded vertex as the primitive setup engine reads it. */
struct vertex {
    int16_t x, y; /* 1/16 pixel, relative to the centre, y downward */
    float z;      /* 0..1 */
    float one_over_w;
    float red, green, blue;
};

static const struct vertex vertices[3] __attribute__((aligned(16))) = {
    {0 * 16, -180 * 16, 0.5f, 1.0f, 1.0f, 0.0f, 0.0f},
    {-200 * 16, 180 * 16, 0.5f, 1.0f, 0.0f, 1.0f, 0.0f},
    {200 * 16, 180 * 16, 0.5f, 1.0f, 0.0f, 0.0f, 1.0f},
};

static struct nv_shader_record record;
static uint32_t no_uniforms[4] __attribute__((aligned(16)));
static uint8_t binning_memory[1024], rendering_memory[4096];

void main(void)
{
    uart_start();
    print_line("triangle: NV mode, three varyings");
    v3d_start();
    struct framebuffer fb = framebuffer_open(WIDTH, HEIGHT, 1);
    struct target target = {framebuffer_page(&fb, 0), WIDTH, HEIGHT, 0xff401a10};

    record = (struct nv_shader_record){
        .flags = SHADER_SINGLE_THREADED,
        .stride = sizeof(struct vertex),
        .varyings = 3,
        .code = bus_address(&shader[SHADER_FRAGMENT / 4]),
        .uniform_address = bus_address(no_uniforms),
        .vertices = bus_address(vertices),
    };

    struct list binning, rendering;
    list_reset(&binning, binning_memory, sizeof binning_memory);
    binning_begin(&binning, &target, ENABLE_FORWARD_FACING | ENABLE_REVERSE_FACING | DEPTH_ALWAYS);
    binning_nv_shader(&binning, &record);
    binning_vertices(&binning, TRIANGLES, 3, 0);
    binning_end(&binning);
    list_reset(&rendering, rendering_memory, sizeof rendering_memory);
    rendering_list(&rendering, &target);

    v3d_draw(&binning, &rendering);
    print_line("done");
    halt();
}
