/* What the parts of the program share. */
#ifndef GEARS_H
#define GEARS_H

#include "board.h"

/* As the attribute streams read it: a place on the wheel and the direction its surface looks. */
struct vertex {
    float x, y, z;
    float normal_x, normal_y, normal_z;
};

/* wheel.c: a wheel around the z axis, its front at +thickness/2; a tooth points along x. */
struct wheel {
    float hole;     /* radius of the hole */
    float pitch;    /* radius of the circle on which two wheels roll */
    float depth;    /* of the teeth, half of it on either side of the pitch circle */
    float thickness;
    uint32_t teeth;
};

enum { TOOTH_VERTICES = 40, TOOTH_INDICES = 72 };

/* Write teeth * TOOTH_VERTICES vertices and teeth * TOOTH_INDICES indices, counted from `first`. */
void wheel_build(const struct wheel *wheel, struct vertex *vertices, uint16_t *indices,
                 uint32_t first);

/* scene.c: three wheels that drive each other. */
enum { WHEELS = 3, ALL_TEETH = 20 + 10 + 10 };
extern const struct wheel wheels[WHEELS];

/* In the order in which the shaders ask for them; the coordinate shader stops before `light`. */
struct uniforms {
    float w[4], x[4], y[4], z[4]; /* rows of the matrix from the wheel to clip coordinates */
    float half_width, half_height;
    float light[3]; /* towards the light, seen from the wheel */
    float ambient;
    float colour[3];
} __attribute__((aligned(16)));

void scene_uniforms(struct uniforms uniforms[WHEELS], uint32_t frame);

#define WIDTH 640u
#define HEIGHT 480u

#endif
