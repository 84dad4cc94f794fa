/* Where everything is: a glowing sky behind, naans tumbling across it from the far to the near. */
#include "naan.h"

#define HALF_WIDTH 320.0f
#define HALF_HEIGHT 240.0f
#define FOCAL_LENGTH 430.0f /* pixels: a thing as wide as it is far covers this many */

uint16_t *grid_indices(uint16_t *at, uint32_t first, uint32_t columns, uint32_t rows)
{
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t x = 0; x < columns; x++) {
            uint32_t corner = first + y * (columns + 1) + x, below = corner + columns + 1;
            *at++ = (uint16_t)corner;
            *at++ = (uint16_t)(corner + 1);
            *at++ = (uint16_t)below;
            *at++ = (uint16_t)(corner + 1);
            *at++ = (uint16_t)(below + 1);
            *at++ = (uint16_t)below;
        }
    return at;
}

void sky_vertices(struct background_vertex *vertex, uint32_t frame)
{
    float time = (float)frame * (1.0f / 60);
    float centre = 0.5f + 0.12f * sine(0.7f * time); /* the fire wanders */
    for (int row = 0; row <= SKY_ROWS; row++) {
        float v = (float)row / SKY_ROWS;
        float ripple = 1.1f * time + 2.0f * sine(3.0f * v - time);
        for (int column = 0; column <= SKY_COLUMNS; column++, vertex++) {
            float u = (float)column / SKY_COLUMNS;
            float wave = 0.5f + 0.5f * sine(5.0f * u + ripple);
            float away = u - centre;
            float ember = v * v * clamp(1.15f - 2.6f * away * away, 0.0f, 1.0f);
            float dusk = (1.0f - v) * (0.6f + 0.4f * wave);
            vertex->x = (int16_t)((u * 2.0f - 1.0f) * HALF_WIDTH * 16.0f);
            vertex->y = (int16_t)((v * 2.0f - 1.0f) * HALF_HEIGHT * 16.0f);
            vertex->z = 1.0f;
            vertex->one_over_w = 1.0f;
            vertex->red = 0.03f + 0.07f * dusk + ember * (0.62f + 0.20f * wave);
            vertex->green = 0.07f + 0.12f * dusk + ember * (0.20f + 0.12f * wave);
            vertex->blue = 0.15f + 0.22f * dusk - 0.06f * ember;
        }
    }
}

struct vector {
    float x, y, z;
};

/* The columns of a rotation: where the bread's own axes point. */
struct axes {
    struct vector across, along, up;
};

static struct axes rotated(float roll, float pitch, float yaw)
{
    float sr = sine(roll), cr = cosine(roll), sp = sine(pitch), cp = cosine(pitch);
    float sy = sine(yaw), cy = cosine(yaw);
    return (struct axes){
        {cy * cr + sy * sp * sr, cp * sr, -sy * cr + cy * sp * sr},
        {-cy * sr + sy * sp * cr, cp * cr, sy * sr + cy * sp * cr},
        {sy * cp, -sp, cy * cp},
    };
}

static struct vector combine(const struct axes *axes, float a, float b, float c)
{
    return (struct vector){
        axes->across.x * a + axes->along.x * b + axes->up.x * c,
        axes->across.y * a + axes->along.y * b + axes->up.y * c,
        axes->across.z * a + axes->along.z * b + axes->up.z * c,
    };
}

/* x modulo a range that begins at -range/2. */
static float wrapped(float x, float range)
{
    float turns = x / range + 0.5f;
    int whole = (int)turns - (turns < 0.0f);
    return (turns - (float)whole - 0.5f) * range;
}

/* Place a vertex; `depth` is the scale at its distance, FOCAL_LENGTH * 16 / z. */
static void place(struct naan_vertex *vertex, float x, float y, float z, float depth)
{
    vertex->x = (int16_t)clamp(x * depth, -32000.0f, 32000.0f);
    vertex->y = (int16_t)clamp(y * depth, -32000.0f, 32000.0f);
    vertex->z = z * 0.05f;
    vertex->one_over_w = depth * (1.0f / (FOCAL_LENGTH * 16.0f));
}

struct light {
    float red, green, blue;
};

/* A moon from the upper left, the oven's glow from below, darker with distance. */
static struct light light_on(struct vector normal, float distance)
{
    float length = square_root(normal.x * normal.x + normal.y * normal.y + normal.z * normal.z);
    float scale = normal.z > 0.0f ? -1.0f / length : 1.0f / length; /* the side we see */
    normal = (struct vector){normal.x * scale, normal.y * scale, normal.z * scale};
    float moon = clamp(-0.42f * normal.x - 0.55f * normal.y - 0.72f * normal.z, 0.0f, 1.0f);
    float oven = clamp(0.86f * normal.y - 0.50f * normal.z, 0.0f, 1.0f);
    float near = clamp(1.22f - 0.070f * distance, 0.25f, 1.0f);
    return (struct light){
        clamp((0.34f + 0.74f * moon + 0.34f * oven) * near, 0.0f, 1.0f),
        clamp((0.31f + 0.72f * moon + 0.16f * oven) * near, 0.0f, 1.0f),
        clamp((0.33f + 0.66f * moon + 0.05f * oven) * near, 0.0f, 1.0f),
    };
}

static void one_naan(struct naan_vertex *shadow, struct naan_vertex *bread, uint32_t number,
                     float time)
{
    uint32_t seed = 100 * number;
    float far = 1.0f - (float)number / (NAANS - 1); /* 1 the farthest, 0 the nearest */
    float distance = 3.1f + 8.5f * far;
    float speed = random_float(seed, 0.55f, 0.95f);
    float half_range = distance * (HALF_WIDTH / FOCAL_LENGTH) + 1.3f;
    float start = random_float(seed + 1, 0.0f, 20.0f) + (float)number * 3.7f;
    float reach = distance * (HALF_HEIGHT / FOCAL_LENGTH);

    struct vector centre;
    centre.x = wrapped(start + speed * time, 2.0f * half_range);
    centre.y = random_float(seed + 2, -0.85f, 0.85f) * reach - 0.12f * centre.x +
               0.16f * sine(1.3f * time + (float)number);
    centre.z = distance;

    float spin = random_float(seed + 3, -0.9f, 0.9f);
    float swing = random_float(seed + 4, 0.7f, 1.5f);
    float phase = random_float(seed + 5, 0.0f, 6.28f);
    struct axes axes = rotated(phase + spin * time, 0.75f * sine(swing * time + phase),
                               0.70f * cosine(0.8f * swing * time + 2.0f * phase));
    float bend = 0.22f * sine(3.1f * time + 1.7f * (float)number) + 0.06f; /* wing beat */

    /* Bent across only, so place and light of a column are worked out once. */
    struct vector columns[GRID + 1];
    struct light lights[GRID + 1];
    for (int column = 0; column <= GRID; column++) {
        float u = (float)column * (2.0f / GRID) - 1.0f;
        struct vector p = combine(&axes, 0.92f * u, 0.0f, bend * (u * u - 0.35f));
        columns[column] = (struct vector){p.x + centre.x, p.y + centre.y, p.z + centre.z};
        lights[column] = light_on(combine(&axes, -2.0f * bend * u, 0.0f, 1.0f), distance);
    }

    for (int row = 0; row <= GRID; row++) {
        float v = (float)row * (2.0f / GRID) - 1.0f;
        struct vector along = {axes.along.x * v, axes.along.y * v, axes.along.z * v};
        for (int column = 0; column <= GRID; column++, shadow++, bread++) {
            float x = columns[column].x + along.x, y = columns[column].y + along.y;
            float z = columns[column].z + along.z;
            float depth = FOCAL_LENGTH * 16.0f / z;
            place(bread, x, y, z, depth);
            bread->s = (float)column * (1.0f / GRID);
            bread->t = (float)row * (1.0f / GRID);
            bread->red = lights[column].red;
            bread->green = lights[column].green;
            bread->blue = lights[column].blue;
            bread->opacity = 1.0f;

            place(shadow, x + 0.16f, y + 0.24f, z, depth);
            shadow->s = bread->s;
            shadow->t = bread->t;
            shadow->red = shadow->green = shadow->blue = 0.0f;
            shadow->opacity = 0.34f;
        }
    }
}

void naan_vertices(struct naan_vertex *vertices, uint32_t frame)
{
    float time = (float)frame * (1.0f / 60);
    for (uint32_t number = 0; number < NAANS; number++) {
        struct naan_vertex *shadow = vertices + number * LAYERS * NAAN_VERTICES;
        one_naan(shadow, shadow + NAAN_VERTICES, number, time);
    }
}
