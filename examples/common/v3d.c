/* V3D: registers, records of control lists, one frame at a time. */
#include "v3d.h"
#include "mailbox.h"

#define V3D (PERIPHERALS + 0xc00000)
#define V3D_IDENT0 (V3D + 0x000)
#define V3D_L2CACTL (V3D + 0x020)
#define V3D_SLCACTL (V3D + 0x024)
#define V3D_CT0CS (V3D + 0x100)
#define V3D_CT1CS (V3D + 0x104)
#define V3D_CT0EA (V3D + 0x108)
#define V3D_CT1EA (V3D + 0x10c)
#define V3D_CT0CA (V3D + 0x110)
#define V3D_CT1CA (V3D + 0x114)
#define V3D_PCS (V3D + 0x130)
#define V3D_BFC (V3D + 0x134)
#define V3D_RFC (V3D + 0x138)
#define V3D_BPOA (V3D + 0x308)
#define V3D_BPOS (V3D + 0x30c)
#define V3D_ERRSTAT (V3D + 0xf20)

#define IDENT_V3D_2 0x02443356u
#define CTRSTA (1u << 15)
#define CTERR (1u << 3)
#define BMOOM (1u << 8)

#define FRAME_TIMEOUT 1000000u

enum { TAG_SET_CLOCK_RATE = 0x38002, TAG_ENABLE_QPU = 0x30012, CLOCK_V3D = 5 };

/* Tile memory for up to 2048 x 2048 pixels; the spill block is given when the pool runs dry. */
enum { MAX_TILES = 32 * 32, POOL_SIZE = 1 << 20, SPILL_SIZE = 1 << 20, TILE_STATE_SIZE = 48 };

#define GPU_MEMORY __attribute__((aligned(4096), section(".noinit")))

static uint8_t pool[POOL_SIZE] GPU_MEMORY;
static uint8_t spill[SPILL_SIZE] GPU_MEMORY;
static uint8_t tile_state[MAX_TILES * TILE_STATE_SIZE] GPU_MEMORY;

#define BLOCK_SIZE 32u /* bytes of a tile's first and further blocks */

static uint32_t tiles(uint32_t pixels)
{
    return (pixels + TILE_SIZE - 1) / TILE_SIZE;
}

void v3d_start(void)
{
    uint32_t rate[3] = {CLOCK_V3D, 250000000, 0};
    property(TAG_SET_CLOCK_RATE, 3, rate);
    uint32_t enable[1] = {1};
    if (!property(TAG_ENABLE_QPU, 1, enable))
        panic("the firmware cannot enable the QPUs");
    uint32_t identity = get32(V3D_IDENT0);
    if (identity != IDENT_V3D_2) {
        print_value("V3D_IDENT0", identity);
        panic("this is no V3D 2");
    }
    print_value("V3D ready, identity", identity);
}

/* Records ------------------------------------------------------------------------------------ */

void list_reset(struct list *list, void *memory, uint32_t size)
{
    list->start = list->at = memory;
    list->end = list->start + size;
}

void list_align(struct list *list, uint32_t alignment)
{
    while ((uintptr_t)list->at & (alignment - 1))
        put_u8(list, 0);
}

void put_u8(struct list *list, uint32_t value)
{
    if (list->at == list->end)
        panic("a control list is full");
    *list->at++ = (uint8_t)value;
}

void put_u16(struct list *list, uint32_t value)
{
    put_u8(list, value);
    put_u8(list, value >> 8);
}

void put_u32(struct list *list, uint32_t value)
{
    put_u16(list, value);
    put_u16(list, value >> 16);
}

void put_float(struct list *list, float value)
{
    union {
        float f;
        uint32_t u;
    } both = {.f = value};
    put_u32(list, both.u);
}

enum record {
    NOP = 1,
    FLUSH_ALL_STATE = 5,
    START_TILE_BINNING = 6,
    BRANCH_TO_SUB_LIST = 17,
    STORE_COLOUR = 24,
    STORE_COLOUR_END_OF_FRAME = 25,
    STORE_GENERAL = 28,
    INDEXED_PRIMITIVES = 32,
    VERTEX_ARRAY_PRIMITIVES = 33,
    PRIMITIVE_LIST_FORMAT = 56,
    GL_SHADER_STATE = 64,
    NV_SHADER_STATE = 65,
    CONFIGURATION_BITS = 96,
    CLIP_WINDOW = 102,
    VIEWPORT_OFFSET = 103,
    Z_CLIP_PLANES = 104,
    CLIPPER_XY_SCALING = 105,
    CLIPPER_Z_SCALE = 106,
    BINNING_MODE = 112,
    RENDERING_MODE = 113,
    CLEAR_COLOURS = 114,
    TILE_COORDINATES = 115,
};

void binning_begin(struct list *list, const struct target *target, uint32_t configuration)
{
    enum { AUTO_INITIALISE = 1 << 2 }; /* 32-byte blocks: size codes 0 */

    if (tiles(target->width) * tiles(target->height) > MAX_TILES)
        panic("the picture has too many tiles");
    put_u8(list, BINNING_MODE);
    put_u32(list, bus_address(pool));
    put_u32(list, sizeof pool);
    put_u32(list, bus_address(tile_state));
    put_u8(list, tiles(target->width));
    put_u8(list, tiles(target->height));
    put_u8(list, AUTO_INITIALISE);

    put_u8(list, START_TILE_BINNING);

    put_u8(list, CONFIGURATION_BITS);
    put_u16(list, configuration);
    put_u8(list, configuration >> 16);

    put_u8(list, CLIP_WINDOW);
    put_u16(list, 0);
    put_u16(list, 0);
    put_u16(list, target->width);
    put_u16(list, target->height);

    put_u8(list, VIEWPORT_OFFSET); /* vertices are relative to the centre, in 1/16 pixel */
    put_u16(list, target->width * 16 / 2);
    put_u16(list, target->height * 16 / 2);

    put_u8(list, Z_CLIP_PLANES);
    put_float(list, 0.0f);
    put_float(list, 1.0f);

    put_u8(list, PRIMITIVE_LIST_FORMAT); /* triangles, 16-bit indices; a shader record follows */
    put_u8(list, 0x12);
}

void binning_clipper(struct list *list, float half_width_16, float half_height_16)
{
    put_u8(list, CLIPPER_XY_SCALING);
    put_float(list, half_width_16);
    put_float(list, half_height_16);

    put_u8(list, CLIPPER_Z_SCALE);
    put_float(list, 0.5f);
    put_float(list, 0.5f);
}

void binning_nv_shader(struct list *list, const void *record)
{
    put_u8(list, NV_SHADER_STATE);
    put_u32(list, bus_address(record));
}

void binning_gl_shader(struct list *list, const void *record, uint32_t attributes)
{
    put_u8(list, GL_SHADER_STATE);
    put_u32(list, bus_address(record) | (attributes & 7));
}

/* Of one shader: program, which attributes it reads and how many bytes they take. */
static void put_vertex_program(struct list *list, struct program program, uint32_t selected,
                               uint32_t bytes)
{
    put_u16(list, 0); /* number of uniforms: not used */
    put_u8(list, selected);
    put_u8(list, bytes);
    put_u32(list, bus_address(program.code));
    put_u32(list, bus_address(program.uniforms));
}

void gl_shader_record(struct list *list, uint32_t flags, uint32_t varyings,
                      struct program fragment, struct program vertex, struct program coordinate,
                      const struct attribute *attributes, uint32_t count)
{
    uint32_t vertex_reads = 0, vertex_bytes = 0, coordinate_reads = 0, coordinate_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bytes = (attributes[i].bytes + 3u) & ~3u; /* rows of the VPM are words */
        if (attributes[i].vertex_offset != NOT_READ) {
            vertex_reads |= 1u << i;
            vertex_bytes += bytes;
        }
        if (attributes[i].coordinate_offset != NOT_READ) {
            coordinate_reads |= 1u << i;
            coordinate_bytes += bytes;
        }
    }
    put_u16(list, flags);
    put_u8(list, 0); /* number of uniforms: not used */
    put_u8(list, varyings);
    put_u32(list, bus_address(fragment.code));
    put_u32(list, bus_address(fragment.uniforms));
    put_vertex_program(list, vertex, vertex_reads, vertex_bytes);
    put_vertex_program(list, coordinate, coordinate_reads, coordinate_bytes);
    for (uint32_t i = 0; i < count; i++) {
        put_u32(list, bus_address(attributes[i].base));
        put_u8(list, attributes[i].bytes - 1u);
        put_u8(list, attributes[i].stride);
        put_u8(list, attributes[i].vertex_offset);
        put_u8(list, attributes[i].coordinate_offset);
    }
}

void binning_vertices(struct list *list, enum primitive mode, uint32_t count, uint32_t first)
{
    put_u8(list, VERTEX_ARRAY_PRIMITIVES);
    put_u8(list, mode);
    put_u32(list, count);
    put_u32(list, first);
}

void binning_indices(struct list *list, enum primitive mode, uint32_t count,
                     const uint16_t *indices, uint32_t maximum)
{
    put_u8(list, INDEXED_PRIMITIVES);
    put_u8(list, mode | 1 << 4); /* 16-bit indices */
    put_u32(list, count);
    put_u32(list, bus_address(indices));
    put_u32(list, maximum);
}

void binning_end(struct list *list)
{
    put_u8(list, FLUSH_ALL_STATE);
    put_u8(list, NOP);
}

static void tile_coordinates(struct list *list, uint32_t x, uint32_t y)
{
    put_u8(list, TILE_COORDINATES);
    put_u8(list, x);
    put_u8(list, y);
}

void rendering_list(struct list *list, const struct target *target)
{
    enum { FORMAT_RGBA8888 = 1 << 2 }; /* linear layout: code 0 */
    uint32_t columns = tiles(target->width), rows = tiles(target->height);

    put_u8(list, CLEAR_COLOURS);
    put_u32(list, target->clear_colour); /* even and odd pixels */
    put_u32(list, target->clear_colour);
    put_u32(list, 0xffffff); /* Z 24 bits, VG mask */
    put_u8(list, 0);         /* stencil */

    put_u8(list, RENDERING_MODE);
    put_u32(list, target->colour);
    put_u16(list, target->width);
    put_u16(list, target->height);
    put_u16(list, FORMAT_RGBA8888);

    /* A store of nothing clears the tile buffer for the first tile. */
    tile_coordinates(list, 0, 0);
    put_u8(list, STORE_GENERAL);
    put_u16(list, 0);
    put_u32(list, 0);

    for (uint32_t y = 0; y < rows; y++) {
        for (uint32_t x = 0; x < columns; x++) {
            bool last = y == rows - 1 && x == columns - 1;
            tile_coordinates(list, x, y);
            put_u8(list, BRANCH_TO_SUB_LIST);
            put_u32(list, bus_address(pool + (y * columns + x) * BLOCK_SIZE));
            put_u8(list, last ? STORE_COLOUR_END_OF_FRAME : STORE_COLOUR);
        }
    }
}

/* Running ------------------------------------------------------------------------------------ */

static _Noreturn void stuck(const char *what)
{
    print_value("\nCT0CS", get32(V3D_CT0CS));
    print_value("CT0CA", get32(V3D_CT0CA));
    print_value("CT1CS", get32(V3D_CT1CS));
    print_value("CT1CA", get32(V3D_CT1CA));
    print_value("PCS", get32(V3D_PCS));
    print_value("ERRSTAT", get32(V3D_ERRSTAT));
    panic(what);
}

void v3d_draw(const struct list *binning, const struct list *rendering)
{
    put32(V3D_CT0CS, CTRSTA);
    put32(V3D_CT1CS, CTRSTA);
    put32(V3D_L2CACTL, 1u << 2);       /* the caches know nothing of what the CPU wrote */
    put32(V3D_SLCACTL, 0x0f0f0f0fu);
    put32(V3D_BPOS, 0);

    uint32_t start = microseconds();
    bool spilled = false;
    put32(V3D_BFC, 1); /* clears the counter */
    put32(V3D_CT0CA, bus_address(binning->start));
    put32(V3D_CT0EA, bus_address(binning->at));
    while (get32(V3D_BFC) == 0) {
        if (get32(V3D_CT0CS) & CTERR)
            stuck("the binning list has an error");
        if (!spilled && get32(V3D_PCS) & BMOOM) {
            put32(V3D_BPOA, bus_address(spill));
            put32(V3D_BPOS, sizeof spill);
            spilled = true;
        }
        if (passed(start, FRAME_TIMEOUT))
            stuck("binning takes too long");
    }

    start = microseconds();
    put32(V3D_RFC, 1);
    put32(V3D_CT1CA, bus_address(rendering->start));
    put32(V3D_CT1EA, bus_address(rendering->at));
    while (get32(V3D_RFC) == 0) {
        if (get32(V3D_CT1CS) & CTERR)
            stuck("the rendering list has an error");
        if (passed(start, FRAME_TIMEOUT))
            stuck("rendering takes too long");
    }
}
