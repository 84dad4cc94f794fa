/* Where the wheels are, how they turn, where the eye and the light are. */
#include "gears.h"
#include "maths.h"

#define DEGREES (PI / 180.0f)
#define FRAMES_A_SECOND 60.0f
#define TURNING (70.0f * DEGREES / FRAMES_A_SECOND) /* the first wheel, in a frame */
#define CYCLE 2160u                                 /* frames in which it turns seven times */
#define PLAY 0.1f                                   /* between the teeth of two wheels */

/* The eye looks down the negative z axis; the wheels are tilted in front of it. */
#define DISTANCE 40.0f
#define TILT (20.0f * DEGREES)
#define TWIST (30.0f * DEGREES)
#define FOCAL_LENGTH 5.0f /* the picture's half height is 1 */
#define NEAREST 5.0f
#define FARTHEST 60.0f

const struct wheel wheels[WHEELS] = {
    {.hole = 1.0f, .pitch = 4.0f, .depth = 0.7f, .thickness = 1.0f, .teeth = 20},
    {.hole = 0.5f, .pitch = 2.0f, .depth = 0.7f, .thickness = 2.0f, .teeth = 10},
    {.hole = 1.3f, .pitch = 2.0f, .depth = 0.7f, .thickness = 0.5f, .teeth = 10},
};

static const float colours[WHEELS][3] = {
    {0.8f, 0.1f, 0.0f},
    {0.0f, 0.8f, 0.2f},
    {0.2f, 0.2f, 1.0f},
};
static const float ambient = 0.2f;

/* The first wheel's place, and in which direction the two others touch it. */
static const float first_x = -3.0f, first_y = -2.0f;
static const float direction[WHEELS] = {0.0f, 0.0f, 90.0f * DEGREES};

/* Rows: where x, y and z end up; the last column moves. */
struct matrix {
    float row[3][4];
};

static struct matrix multiply(const struct matrix *a, const struct matrix *b)
{
    struct matrix product;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            float sum = j == 3 ? a->row[i][3] : 0.0f;
            for (int k = 0; k < 3; k++)
                sum += a->row[i][k] * b->row[k][j];
            product.row[i][j] = sum;
        }
    return product;
}

static struct matrix eye(void)
{
    float ct = cosine(TILT), st = sine(TILT), cw = cosine(TWIST), sw = sine(TWIST);
    struct matrix tilt = {{{1, 0, 0, 0}, {0, ct, -st, 0}, {0, st, ct, -DISTANCE}}};
    struct matrix twist = {{{cw, 0, sw, 0}, {0, 1, 0, 0}, {-sw, 0, cw, 0}}};
    return multiply(&tilt, &twist);
}

/* How far a wheel has turned when the first one is at `angle`: where they touch, a tooth of one is
 * in a gap of the other. In units of their teeth the places add up to a half, whatever the angle. */
static float meshed(uint32_t number, float angle)
{
    float first_step = 2.0f * PI / (float)wheels[0].teeth;
    float step = 2.0f * PI / (float)wheels[number].teeth;
    float first_place = (direction[number] - angle) / first_step;
    float place = 0.5f - first_place;
    return direction[number] + PI - step * place;
}

static struct matrix place_of(uint32_t number, float angle)
{
    float x = first_x, y = first_y;
    if (number > 0) {
        float distance = wheels[0].pitch + wheels[number].pitch + PLAY;
        x += distance * cosine(direction[number]);
        y += distance * sine(direction[number]);
        angle = meshed(number, angle);
    }
    float c = cosine(angle), s = sine(angle);
    return (struct matrix){{{c, -s, 0, x}, {s, c, 0, y}, {0, 0, 1, 0}}};
}

void scene_uniforms(struct uniforms uniforms[WHEELS], uint32_t frame)
{
    static const float light[3] = {0.40824829f, 0.40824829f, 0.81649658f}; /* seen from the eye */
    const float depth_scale = -(FARTHEST + NEAREST) / (FARTHEST - NEAREST);
    const float depth_offset = -2.0f * FARTHEST * NEAREST / (FARTHEST - NEAREST);
    const float shape = (float)HEIGHT / WIDTH;
    float angle = TURNING * (float)(frame % CYCLE);
    struct matrix view = eye();

    for (uint32_t number = 0; number < WHEELS; number++) {
        struct matrix place = place_of(number, angle), seen = multiply(&view, &place);
        struct uniforms *u = &uniforms[number];
        for (int j = 0; j < 4; j++) {
            u->x[j] = FOCAL_LENGTH * shape * seen.row[0][j];
            u->y[j] = FOCAL_LENGTH * seen.row[1][j];
            u->z[j] = depth_scale * seen.row[2][j] + (j == 3 ? depth_offset : 0.0f);
            u->w[j] = -seen.row[2][j];
        }
        u->half_width = WIDTH * 16 / 2;
        u->half_height = -(float)(HEIGHT * 16 / 2); /* pixels count downward */
        for (int j = 0; j < 3; j++) {               /* the other way round: rows become columns */
            u->light[j] = seen.row[0][j] * light[0] + seen.row[1][j] * light[1] +
                          seen.row[2][j] * light[2];
            u->colour[j] = colours[number][j];
        }
        u->ambient = ambient;
    }
}
