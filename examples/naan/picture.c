/* Bakes a naan: a height map with bubbles, lit from the upper left, browned at the rim, charred where
 * bubbles met the oven wall, sprinkled with coriander and nigella; then its mip levels. */
#include "naan.h"

#define SIZE ((int)TEXTURE_SIZE)

enum { LEVELS = 5, BUBBLES = 44, LEAVES = 30, SEEDS = 26 };

/* Levels below the base, one under the other (see level_offset), 4 KiB aligned at level 0. */
#define BELOW_BASE 0x16000u
#define BASE_SIZE (TEXTURE_SIZE * TEXTURE_SIZE * 4)
static uint8_t texture[BELOW_BASE + BASE_SIZE] __attribute__((aligned(4096), section(".noinit")));

/* Work space, row by row. */
#define WORK __attribute__((section(".noinit")))
static float height[TEXTURE_SIZE * TEXTURE_SIZE] WORK;
static float rise[TEXTURE_SIZE * TEXTURE_SIZE] WORK; /* bubbles */
static float soot[TEXTURE_SIZE * TEXTURE_SIZE] WORK;
static float grain[TEXTURE_SIZE * TEXTURE_SIZE] WORK;
static uint32_t pixels[TEXTURE_SIZE * TEXTURE_SIZE] WORK;
static uint32_t uniforms[4] __attribute__((aligned(16)));

/* Texture memory ------------------------------------------------------------------------------ */

/* Offset of a 32-bit texel in T format: 4x4 texel utiles of 64 bytes, 4x4 of them a sub-tile,
 * 2x2 of those a 4 KiB tile; tile rows run to and fro. */
static uint32_t t_format_offset(uint32_t x, uint32_t y, uint32_t width)
{
    static const uint8_t even_row[4] = {0, 3, 1, 2}, odd_row[4] = {2, 1, 3, 0};
    uint32_t tile_x = x / 32, tile_y = y / 32, tiles = width / 32;
    uint32_t corner = (y / 16 % 2) * 2 + x / 16 % 2;
    uint32_t sub_tile = tile_y & 1 ? odd_row[corner] : even_row[corner];
    if (tile_y & 1)
        tile_x = tiles - 1 - tile_x;
    return (tile_y * tiles + tile_x) * 4096 + sub_tile * 1024 +
           ((y / 4 % 4) * 4 + x / 4 % 4) * 64 + (y % 4) * 16 + (x % 4) * 4;
}

/* Small levels are stored as rows of utiles. */
static uint32_t linear_tile_offset(uint32_t x, uint32_t y, uint32_t width)
{
    return ((y / 4) * (width / 4) + x / 4) * 64 + (y % 4) * 16 + (x % 4) * 4;
}

static void store_level(uint8_t *base, uint32_t width)
{
    for (uint32_t y = 0; y < width; y++)
        for (uint32_t x = 0; x < width; x++) {
            uint32_t offset =
                width > 16 ? t_format_offset(x, y, width) : linear_tile_offset(x, y, width);
            *(uint32_t *)(base + offset) = pixels[y * width + x];
        }
}

/* Average 2x2 texels, in place. */
static void halve(uint32_t width)
{
    uint32_t half = width / 2;
    for (uint32_t y = 0; y < half; y++)
        for (uint32_t x = 0; x < half; x++) {
            const uint32_t *four = &pixels[2 * y * width + 2 * x];
            uint32_t even = 0x00020002, odd = 0x00020002;
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t texel = four[(i >> 1) * width + (i & 1)];
                even += texel & 0x00ff00ff;
                odd += texel >> 8 & 0x00ff00ff;
            }
            pixels[y * half + x] = (even >> 2 & 0x00ff00ff) | (odd << 6 & 0xff00ff00);
        }
}

/* The dough ---------------------------------------------------------------------------------- */

static float lattice(int x, int y, uint32_t seed)
{
    return (float)(hash((uint32_t)x * 0x9e3779b1u ^ (uint32_t)y * 0x85ebca6bu ^ seed) >> 16) *
           (1.0f / 65536);
}

/* Add smooth noise: random values on a lattice of 1 << shift texels, interpolated. */
static void add_noise(float *field, int shift, float amplitude, uint32_t seed)
{
    int cell = 1 << shift;
    for (int cy = 0; cy < SIZE >> shift; cy++)
        for (int cx = 0; cx < SIZE >> shift; cx++) {
            float a = lattice(cx, cy, seed), b = lattice(cx + 1, cy, seed);
            float c = lattice(cx, cy + 1, seed), d = lattice(cx + 1, cy + 1, seed);
            for (int y = 0; y < cell; y++) {
                float ty = (float)y / (float)cell;
                ty = ty * ty * (3.0f - 2.0f * ty);
                float left = mix(a, c, ty) * amplitude, right = mix(b, d, ty) * amplitude;
                float *row = &field[((cy << shift) + y) * SIZE + (cx << shift)];
                for (int x = 0; x < cell; x++) {
                    float tx = (float)x / (float)cell;
                    row[x] += mix(left, right, tx * tx * (3.0f - 2.0f * tx));
                }
            }
        }
}

/* Positive inside the teardrop, 0 at its edge, about 1 in the middle. */
static float teardrop(int x, int y)
{
    float u = ((float)x - 127.5f) / 124.0f;
    float v = ((float)y - 127.5f) / 122.0f;
    float width = 0.64f + 0.33f * v; /* round below, narrow above */
    float across = u / width;
    return 1.0f - v * v - across * across;
}

/* Inside-ness of one round spot: 1 in its centre, 0 at its edge. */
struct spot {
    float x, y, radius, squeeze;
};

static float spot_at(const struct spot *spot, int x, int y)
{
    float dx = ((float)x - spot->x) / spot->radius;
    float dy = ((float)y - spot->y) / (spot->radius * spot->squeeze);
    return 1.0f - dx * dx - dy * dy;
}

static struct spot random_spot(uint32_t seed, float smallest, float largest)
{
    struct spot spot;
    for (uint32_t attempt = 0;; attempt++) { /* inside the bread */
        uint32_t s = seed * 64 + attempt * 4;
        spot.x = random_float(s, 20.0f, 236.0f);
        spot.y = random_float(s + 1, 14.0f, 242.0f);
        if (teardrop((int)spot.x, (int)spot.y) > 0.10f || attempt == 15)
            break;
    }
    float size = random_float(seed * 64 + 62, 0.0f, 1.0f);
    spot.radius = mix(smallest, largest, size * size);
    spot.squeeze = random_float(seed * 64 + 63, 0.75f, 1.25f);
    return spot;
}

struct box {
    int left, top, right, bottom;
};

static struct box box_of(const struct spot *spot)
{
    float high = spot->radius * (spot->squeeze > 1.0f ? spot->squeeze : 1.0f) + 1.0f;
    return (struct box){
        (int)clamp(spot->x - high, 0.0f, SIZE - 1),
        (int)clamp(spot->y - high, 0.0f, SIZE - 1),
        (int)clamp(spot->x + high, 0.0f, SIZE - 1),
        (int)clamp(spot->y + high, 0.0f, SIZE - 1),
    };
}

static void blow_bubbles(void)
{
    for (uint32_t i = 0; i < BUBBLES; i++) {
        struct spot spot = random_spot(1000 + i, 5.0f, 27.0f);
        bool burnt = hash(i) % 5 < 3;
        struct box box = box_of(&spot);
        for (int y = box.top; y <= box.bottom; y++)
            for (int x = box.left; x <= box.right; x++) {
                float inside = spot_at(&spot, x, y);
                if (inside <= 0.0f)
                    continue;
                float *r = &rise[y * SIZE + x];
                float dome = inside * (2.0f - inside) * spot.radius * 0.020f;
                if (dome > *r)
                    *r = dome;
                if (burnt) {
                    float *s = &soot[y * SIZE + x];
                    float dark = inside - 0.15f;
                    if (dark > *s)
                        *s = dark;
                }
            }
    }
}

static void shape_dough(void)
{
    for (int i = 0; i < SIZE * SIZE; i++) {
        height[i] = rise[i] = grain[i] = 0.0f;
        soot[i] = 0.0f;
    }
    add_noise(grain, 5, 0.48f, 1);
    add_noise(grain, 3, 0.34f, 2);
    add_noise(grain, 2, 0.18f, 3);
    blow_bubbles();
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            int i = y * SIZE + x;
            float inside = teardrop(x, y) + 0.16f * (grain[i] - 0.5f);
            float rim = smooth_step(0.0f, 0.30f, inside) - 0.35f * smooth_step(0.15f, 0.55f, inside);
            height[i] = rim + rise[i] + 0.22f * grain[i];
        }
}

/* Colours ------------------------------------------------------------------------------------ */

struct colour {
    float red, green, blue;
};

static struct colour blend(struct colour a, struct colour b, float t)
{
    return (struct colour){mix(a.red, b.red, t), mix(a.green, b.green, t), mix(a.blue, b.blue, t)};
}

static uint32_t pack_premultiplied(struct colour c, float alpha)
{
    float scale = 255.0f * alpha;
    return (uint32_t)(clamp(c.red, 0.0f, 1.0f) * scale + 0.5f) |
           (uint32_t)(clamp(c.green, 0.0f, 1.0f) * scale + 0.5f) << 8 |
           (uint32_t)(clamp(c.blue, 0.0f, 1.0f) * scale + 0.5f) << 16 |
           (uint32_t)(scale + 0.5f) << 24;
}

static void brown(void)
{
    static const struct colour cream = {1.00f, 0.88f, 0.63f}, golden = {0.93f, 0.65f, 0.28f};
    static const struct colour crust = {0.66f, 0.36f, 0.13f}, charred = {0.20f, 0.10f, 0.05f};

    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            int i = y * SIZE + x;
            float noise = grain[i];
            float inside = teardrop(x, y) + 0.16f * (noise - 0.5f);
            float alpha = smooth_step(0.0f, 0.045f, inside);
            if (alpha <= 0.0f || x == 0 || y == 0 || x == SIZE - 1 || y == SIZE - 1) {
                pixels[i] = 0;
                continue;
            }
            float slope_x = (height[i + 1] - height[i - 1]) * 7.0f;
            float slope_y = (height[i + SIZE] - height[i - SIZE]) * 7.0f;
            float length = square_root(slope_x * slope_x + slope_y * slope_y + 1.0f);
            float facing = (0.46f * slope_x + 0.56f * slope_y + 0.69f) / length;

            float toast = smooth_step(0.30f, 0.75f, noise) * 0.60f + rise[i] * 1.1f;
            toast += 0.45f * (1.0f - smooth_step(0.02f, 0.30f, inside));
            struct colour c = blend(cream, golden, clamp(toast, 0.0f, 1.0f));
            c = blend(c, crust, 0.75f * (1.0f - smooth_step(0.0f, 0.12f, inside)));
            float burn = soot[i] * (0.20f + 1.7f * noise);
            c = blend(c, crust, smooth_step(0.02f, 0.55f, burn) * 0.90f);
            c = blend(c, charred, smooth_step(0.38f, 0.95f, burn) * 0.90f);

            float light = 0.56f + 0.60f * clamp(facing, 0.0f, 1.0f);
            float shine = clamp(facing - 0.86f, 0.0f, 1.0f) * 1.6f; /* butter */
            c.red = c.red * light + shine;
            c.green = c.green * light + shine * 0.93f;
            c.blue = c.blue * light + shine * 0.70f;
            pixels[i] = pack_premultiplied(c, alpha);
        }
}

static void sprinkle(uint32_t count, uint32_t seed, float smallest, float largest,
                     struct colour dark, struct colour bright)
{
    for (uint32_t n = 0; n < count; n++) {
        struct spot spot = random_spot(seed + n, smallest, largest);
        struct colour c = blend(dark, bright, random_float(seed + 7 * n, 0.0f, 1.0f));
        struct box box = box_of(&spot);
        for (int y = box.top; y <= box.bottom; y++)
            for (int x = box.left; x <= box.right; x++) {
                if (spot_at(&spot, x, y) <= 0.0f || teardrop(x, y) < 0.2f)
                    continue;
                float light = 0.7f + 0.5f * grain[y * SIZE + x];
                struct colour lit = {c.red * light, c.green * light, c.blue * light};
                pixels[y * SIZE + x] = pack_premultiplied(lit, 1.0f);
            }
    }
}

const uint32_t *picture_bake(void)
{
    enum { LINEAR_IN_NEAREST_LEVEL = 4 << 4, WRAP_CLAMP = 1 << 2 | 1 << 0 };

    shape_dough();
    brown();
    sprinkle(LEAVES, 3000, 1.5f, 4.5f, (struct colour){0.10f, 0.24f, 0.05f},
             (struct colour){0.30f, 0.50f, 0.14f});
    sprinkle(SEEDS, 5000, 1.0f, 1.7f, (struct colour){0.05f, 0.04f, 0.04f},
             (struct colour){0.16f, 0.13f, 0.11f});

    uint8_t *base = texture + BELOW_BASE;
    uint8_t *level = base;
    uint32_t width = TEXTURE_SIZE;
    for (uint32_t n = 0; n < LEVELS; n++) {
        store_level(level, width);
        halve(width);
        width /= 2;
        level -= width * width * 4; /* the next one lies directly below */
    }

    uniforms[0] = bus_address(base) | (LEVELS - 1); /* type 0: RGBA8888 */
    uniforms[1] = TEXTURE_SIZE << 20 | TEXTURE_SIZE << 8 | LINEAR_IN_NEAREST_LEVEL |
                  WRAP_CLAMP; /* magnified: linear */
    return uniforms;
}
