/* A part of the Mandelbrot set, in integers: 6 bits before the point and 26 after. */
#include "multicore.h"

enum { POINT = 26, MOST = 200 };

#define FIXED(x) ((int32_t)((x) * (1 << POINT)))
#define CENTRE_X FIXED(-0.7455)
#define CENTRE_Y FIXED(0.1119)
#define STEP FIXED(0.0055 / 640)
#define INSIDE 0xff000000u

/* log2 of a value above 1, both with 16 bits after the point: the mantissa is taken as a straight line. */
static uint32_t logarithm(uint32_t value)
{
    uint32_t whole = 31 - (uint32_t)__builtin_clz(value);
    return (whole - 16) << 16 | ((value << (31 - whole)) >> 15 & 0xffff);
}

/* Escape time in 1/256 steps, without the usual edges: how far the last step went counts, too. */
static int32_t escape_time(int32_t cx, int32_t cy)
{
    int32_t x = 0, y = 0;
    for (int32_t step = 0; step < MOST; step++) {
        int64_t xx = (int64_t)x * x, yy = (int64_t)y * y;
        int64_t length = xx + yy;
        if (length > (int64_t)16 << 2 * POINT) {
            /* log2(log2(|z|²) / 4) is 0 at the edge and nearly 1 a step after it */
            uint32_t beyond = logarithm(logarithm((uint32_t)(length >> (2 * POINT - 16))) / 4);
            return (step << 8) - (int32_t)(beyond >> 8);
        }
        y = (int32_t)((int64_t)x * y >> (POINT - 1)) + cy;
        x = (int32_t)((xx - yy) >> POINT) + cx;
    }
    return -1;
}

/* Every core has its own colours: black, a dark one, a light one, white and back. */
void palette_make(struct palette *palette, uint32_t core)
{
    static const uint8_t keys[CORES][3][3] = {
        {{10, 30, 90}, {60, 150, 255}, {255, 255, 255}},
        {{10, 70, 30}, {110, 220, 70}, {255, 255, 210}},
        {{100, 40, 0}, {255, 170, 20}, {255, 250, 220}},
        {{80, 0, 80}, {240, 80, 160}, {255, 230, 255}},
    };
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t place = i < 128 ? i : 255 - i; /* there and back */
        uint32_t colour = 0xff000000u;
        for (uint32_t channel = 0; channel < 3; channel++) {
            uint32_t from = place < 64 ? keys[core][0][channel] : keys[core][1][channel];
            uint32_t to = place < 64 ? keys[core][1][channel] : keys[core][2][channel];
            uint32_t part = place & 63;
            colour |= (from * (64 - part) + to * part) / 64 << 8 * channel;
        }
        palette->colours[i] = colour;
    }
}

void fractal_row(const struct framebuffer *fb, uint32_t y, const struct palette *palette)
{
    uint8_t *row = (uint8_t *)from_bus_address(fb->address) + y * fb->pitch;
    volatile uint32_t *pixels = (volatile uint32_t *)row;
    int32_t cx = CENTRE_X - (int32_t)fb->width / 2 * STEP;
    int32_t cy = CENTRE_Y - (int32_t)(fb->height / 2 - y) * STEP;
    for (uint32_t x = 0; x < fb->width; x++, cx += STEP) {
        int32_t time = escape_time(cx, cy);
        pixels[x] = time < 0 ? INSIDE : palette->colours[time >> 4 & 255];
    }
}
