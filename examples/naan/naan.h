/* What the parts of the program share. */
#ifndef NAAN_H
#define NAAN_H

#include "board.h"
#include "maths.h"

/* random.c */
uint32_t hash(uint32_t value); /* scrambles bits: the source of all randomness here */
float random_float(uint32_t seed, float low, float high);

static inline float smooth_step(float low, float high, float value)
{
    float t = clamp((value - low) / (high - low), 0.0f, 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

/* picture.c: the texture. Returns its uniforms (configuration words 0 and 1). */
#define TEXTURE_SIZE 256u
const uint32_t *picture_bake(void);

/* flight.c: where everything is. */
enum { NAANS = 40, GRID = 3 };

struct background_vertex {
    int16_t x, y; /* 1/16 pixel from the centre, y downward */
    float z, one_over_w;
    float red, green, blue;
};

struct naan_vertex {
    int16_t x, y;
    float z, one_over_w;
    float s, t;
    float red, green, blue, opacity;
};

enum {
    SKY_COLUMNS = 10,
    SKY_ROWS = 8,
    SKY_VERTICES = (SKY_COLUMNS + 1) * (SKY_ROWS + 1),
    SKY_INDICES = SKY_COLUMNS * SKY_ROWS * 6,
    NAAN_VERTICES = (GRID + 1) * (GRID + 1),
    NAAN_INDICES = GRID * GRID * 6,
    LAYERS = 2, /* shadow and bread */
    ALL_VERTICES = NAANS * LAYERS * NAAN_VERTICES,
    ALL_INDICES = NAANS * LAYERS * NAAN_INDICES,
};

/* Two triangles for every cell of a grid, counting from a first vertex. Returns the end. */
uint16_t *grid_indices(uint16_t *at, uint32_t first, uint32_t columns, uint32_t rows);
void sky_vertices(struct background_vertex *vertices, uint32_t frame);
void naan_vertices(struct naan_vertex *vertices, uint32_t frame);

#endif
