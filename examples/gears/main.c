/* Three gears drive each other: GL mode, so the GPU itself turns, projects and lights the vertices;
 * the CPU gives it a new matrix at every vertical sync. A Z buffer decides what is in front. */
#include "gears.h"
#include "mailbox.h"
#include "shader.h"
#include "v3d.h"
#include "vsync.h"

enum { ALL_VERTICES = ALL_TEETH * TOOTH_VERTICES, ALL_INDICES = ALL_TEETH * TOOTH_INDICES };

static struct vertex vertices[ALL_VERTICES] __attribute__((aligned(16)));
static uint16_t indices[ALL_INDICES] __attribute__((aligned(4)));
static struct uniforms uniforms[WHEELS];
static uint8_t shader_records[WHEELS][64] __attribute__((aligned(16)));
static uint8_t binning_memory[1024], rendering_memory[2][4096];

static void build_wheels(void)
{
    uint32_t tooth = 0;
    for (uint32_t number = 0; number < WHEELS; number++) {
        wheel_build(&wheels[number], &vertices[tooth * TOOTH_VERTICES],
                    &indices[tooth * TOOTH_INDICES], tooth * TOOTH_VERTICES);
        tooth += wheels[number].teeth;
    }
}

/* One record a wheel: they differ in their uniforms only. */
static void describe_shaders(void)
{
    static const struct attribute attributes[] = {
        {&vertices[0].x, 12, sizeof(struct vertex), 0, 0},
        {&vertices[0].normal_x, 12, sizeof(struct vertex), 12, NOT_READ},
    };
    for (uint32_t number = 0; number < WHEELS; number++) {
        struct program fragment = {&shader[SHADER_FRAGMENT / 4], &uniforms[number]};
        struct program vertex = {&shader[SHADER_VERTEX / 4], &uniforms[number]};
        struct program coordinate = {&shader[SHADER_COORDINATE / 4], &uniforms[number]};
        struct list list;
        list_reset(&list, shader_records[number], sizeof shader_records[number]);
        gl_shader_record(&list, SHADER_SINGLE_THREADED | SHADER_CLIPPING, 3, fragment, vertex,
                         coordinate, attributes, 2);
    }
}

static void build_binning_list(struct list *list, const struct target *target)
{
    /* Fronts are counter-clockwise where y grows upward; in memory it grows downward. */
    const uint32_t configuration =
        ENABLE_FORWARD_FACING | CLOCKWISE_IS_FORWARD | DEPTH_LESS | DEPTH_UPDATE;
    const uint16_t *at = indices;

    list_reset(list, binning_memory, sizeof binning_memory);
    binning_begin(list, target, configuration);
    binning_clipper(list, WIDTH * 16 / 2, -(float)(HEIGHT * 16 / 2));
    for (uint32_t number = 0; number < WHEELS; number++) {
        uint32_t count = wheels[number].teeth * TOOTH_INDICES;
        binning_gl_shader(list, shader_records[number], 2);
        binning_indices(list, TRIANGLES, count, at, ALL_VERTICES - 1);
        at += count;
    }
    binning_end(list);
}

/* Once a second. */
static void report(void)
{
    static uint32_t start, frames;
    uint32_t duration = microseconds() - start;

    if (start == 0) {
        start = microseconds();
        return;
    }
    frames++;
    if (duration < 1000000)
        return;
    print_number(frames);
    print(" frames in ");
    print_number(duration / 1000);
    print(" ms = ");
    uint32_t tenths = (uint32_t)((float)frames * 1e7f / (float)duration + 0.5f);
    print_number(tenths / 10);
    print(".");
    print_number(tenths % 10);
    print_line(" frames a second");
    start += duration;
    frames = 0;
}

void main(void)
{
    uart_start();
    print_line("gears: GL mode, matrices and light on the QPUs, Z buffer");
    v3d_start();
    struct framebuffer fb = framebuffer_open(WIDTH, HEIGHT, 2);
    build_wheels();
    describe_shaders();

    struct list binning, rendering[2];
    for (uint32_t page = 0; page < 2; page++) {
        struct target target = {framebuffer_page(&fb, page), WIDTH, HEIGHT, 0xff000000};
        if (page == 0)
            build_binning_list(&binning, &target);
        list_reset(&rendering[page], rendering_memory[page], sizeof rendering_memory[page]);
        rendering_list(&rendering[page], &target);
    }

    vsync_start();
    for (uint32_t frame = 0;; frame++) {
        uint32_t page = (frame + 1) & 1; /* page 0 is shown first */
        scene_uniforms(uniforms, frame);
        v3d_draw(&binning, &rendering[page]);
        vsync_wait();
        framebuffer_show(&fb, page);
        report();
    }
}
