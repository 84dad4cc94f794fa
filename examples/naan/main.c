/* Naan breads fly over a glowing sky: textured, lit, blended polygons, a new picture at every vertical
 * sync, drawn into the page that is not shown. */
#include "background.h"
#include "bread.h"
#include "mailbox.h"
#include "naan.h"
#include "v3d.h"
#include "vsync.h"

#define WIDTH 640u
#define HEIGHT 480u
#define FRAMES_A_SECOND 60u

static struct background_vertex sky[SKY_VERTICES] __attribute__((aligned(16)));
static struct naan_vertex breads[ALL_VERTICES] __attribute__((aligned(16)));
static uint16_t sky_index[SKY_INDICES] __attribute__((aligned(4)));
static uint16_t bread_index[ALL_INDICES] __attribute__((aligned(4)));

static struct nv_shader_record sky_record, bread_record;
static uint32_t no_uniforms[4] __attribute__((aligned(16)));
static uint8_t binning_memory[1024], rendering_memory[2][4096];

static void describe_shaders(const uint32_t *texture)
{
    sky_record = (struct nv_shader_record){
        .flags = SHADER_SINGLE_THREADED,
        .stride = sizeof(struct background_vertex),
        .varyings = 3,
        .code = bus_address(&background[BACKGROUND_FRAGMENT / 4]),
        .uniform_address = bus_address(no_uniforms),
        .vertices = bus_address(sky),
    };
    bread_record = (struct nv_shader_record){
        .flags = SHADER_SINGLE_THREADED,
        .stride = sizeof(struct naan_vertex),
        .varyings = 6,
        .code = bus_address(&bread[BREAD_FRAGMENT / 4]),
        .uniform_address = bus_address(texture),
        .vertices = bus_address(breads),
    };
}

static void build_indices(void)
{
    grid_indices(sky_index, 0, SKY_COLUMNS, SKY_ROWS);
    uint16_t *at = bread_index;
    for (uint32_t n = 0; n < NAANS * LAYERS; n++)
        at = grid_indices(at, n * NAAN_VERTICES, GRID, GRID);
}

static void build_binning_list(struct list *list, const struct target *target)
{
    list_reset(list, binning_memory, sizeof binning_memory);
    binning_begin(list, target, ENABLE_FORWARD_FACING | ENABLE_REVERSE_FACING | DEPTH_ALWAYS);
    binning_nv_shader(list, &sky_record);
    binning_indices(list, TRIANGLES, SKY_INDICES, sky_index, SKY_VERTICES - 1);
    binning_nv_shader(list, &bread_record);
    binning_indices(list, TRIANGLES, ALL_INDICES, bread_index, ALL_VERTICES - 1);
    binning_end(list);
}

void main(void)
{
    uart_start();
    print_line("naan: textured polygons over a glowing sky");
    v3d_start();
    struct framebuffer fb = framebuffer_open(WIDTH, HEIGHT, 2);

    print_line("baking");
    uint32_t start = microseconds();
    describe_shaders(picture_bake());
    print("baked in ");
    print_number((microseconds() - start) / 1000);
    print_line(" ms");
    build_indices();

    struct list binning, rendering[2];
    for (uint32_t page = 0; page < 2; page++) {
        struct target target = {framebuffer_page(&fb, page), WIDTH, HEIGHT, 0xff000000};
        if (page == 0)
            build_binning_list(&binning, &target);
        list_reset(&rendering[page], rendering_memory[page], sizeof rendering_memory[page]);
        rendering_list(&rendering[page], &target);
    }

    vsync_start();
    start = microseconds();
    for (uint32_t frame = 0;; frame++) {
        uint32_t page = (frame + 1) & 1; /* page 0 is shown first */
        sky_vertices(sky, frame);
        naan_vertices(breads, frame);
        v3d_draw(&binning, &rendering[page]);
        vsync_wait();
        framebuffer_show(&fb, page);
        if ((frame + 1) % FRAMES_A_SECOND == 0) {
            print_number(frame + 1);
            print(" frames, the last 60 in ");
            print_number((microseconds() - start) / 1000);
            print_line(" ms");
            start = microseconds();
        }
    }
}
