/* The VideoCore IV 3D block: switching it on, writing control lists, running them. */
#ifndef V3D_H
#define V3D_H

#include "board.h"

#define TILE_SIZE 64u

/* A control list under construction: bytes without alignment, little endian. */
struct list {
    uint8_t *start, *at, *end;
};

/* What a frame is drawn into and where the binner keeps its tile lists. */
struct target {
    uint32_t colour; /* bus address, rows of 4 * width bytes, rgba8888 */
    uint32_t width, height;
    uint32_t clear_colour; /* alpha in 31:24, blue, green, red in 7:0 */
};

enum primitive { POINTS, LINES, LINE_LOOP, LINE_STRIP, TRIANGLES, TRIANGLE_STRIP, TRIANGLE_FAN };

/* Record 96 */
enum configuration {
    ENABLE_FORWARD_FACING = 1 << 0,
    ENABLE_REVERSE_FACING = 1 << 1,
    CLOCKWISE_IS_FORWARD = 1 << 2,
    DEPTH_LESS = 1 << 12,
    DEPTH_ALWAYS = 7 << 12,
    DEPTH_UPDATE = 1 << 15,
};

/* Power, clock and identity; stops with a message if there is no V3D. */
void v3d_start(void);

/* Records. A list that overflows stops the program with a message. */
void list_reset(struct list *list, void *memory, uint32_t size);
void list_align(struct list *list, uint32_t alignment);
void put_u8(struct list *list, uint32_t value);
void put_u16(struct list *list, uint32_t value);
void put_u32(struct list *list, uint32_t value);
void put_float(struct list *list, float value);

/* The start of every binning list: tile memory, "start tile binning", clip window and viewport. */
void binning_begin(struct list *list, const struct target *target, uint32_t configuration);
void binning_clipper(struct list *list, float half_width_16, float half_height_16);
void binning_nv_shader(struct list *list, const void *record);
void binning_gl_shader(struct list *list, const void *record, uint32_t attributes);
void binning_vertices(struct list *list, enum primitive mode, uint32_t count, uint32_t first);
void binning_indices(struct list *list, enum primitive mode, uint32_t count,
                     const uint16_t *indices, uint32_t maximum);
void binning_end(struct list *list);

/* The whole rendering list: clear, then each tile's list, then its store. */
void rendering_list(struct list *list, const struct target *target);

/* 16 bytes of an NV shader record. */
struct nv_shader_record {
    uint8_t flags;
    uint8_t stride; /* bytes of one vertex */
    uint8_t uniforms;
    uint8_t varyings;
    uint32_t code;
    uint32_t uniform_address;
    uint32_t vertices;
} __attribute__((aligned(16)));

enum { SHADER_SINGLE_THREADED = 1, SHADER_CLIPPING = 4 };

/* One of the three programs of a GL shader record. */
struct program {
    const uint32_t *code;
    const void *uniforms;
};

/* One array of vertex data: element 0, bytes of an element, bytes from one to the next, and where the
 * element goes in the column that a shader reads, in bytes. */
enum { NOT_READ = 0xff };
struct attribute {
    const void *base;
    uint8_t bytes, stride;
    uint8_t vertex_offset, coordinate_offset; /* NOT_READ: that shader does without */
};

/* A GL shader record; the list must begin 16-byte aligned. */
void gl_shader_record(struct list *list, uint32_t flags, uint32_t varyings,
                      struct program fragment, struct program vertex, struct program coordinate,
                      const struct attribute *attributes, uint32_t count);

/* Bin, then render; waits for both and stops with a message if one takes longer than a second. */
void v3d_draw(const struct list *binning, const struct list *rendering);

#endif
