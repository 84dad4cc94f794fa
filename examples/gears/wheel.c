/* A toothed wheel: front and back, the flanks, tips and roots of the teeth, and the hole. Every
 * surface has vertices of its own, because its normals are its own; only the hole is smooth. */
#include "gears.h"
#include "maths.h"

/* Where vertices and indices go next. */
struct builder {
    struct vertex *vertex;
    uint16_t *index;
    uint32_t next; /* number of that vertex */
};

struct point {
    float x, y;
};

static uint32_t add(struct builder *b, struct point p, float z, float nx, float ny, float nz)
{
    *b->vertex++ = (struct vertex){p.x, p.y, z, nx, ny, nz};
    return b->next++;
}

static void add_triangle(struct builder *b, uint32_t a, uint32_t c, uint32_t d)
{
    *b->index++ = (uint16_t)a;
    *b->index++ = (uint16_t)c;
    *b->index++ = (uint16_t)d;
}

/* Corners counter-clockwise for those who look at the front. */
static void add_quad(struct builder *b, uint32_t a, uint32_t c, uint32_t d, uint32_t e)
{
    add_triangle(b, a, c, d);
    add_triangle(b, a, d, e);
}

static struct point on_circle(float radius, float angle)
{
    return (struct point){radius * cosine(angle), radius * sine(angle)};
}

/* One tooth and the gap behind it, counter-clockwise: root, tip, tip, root, the next one's root. */
struct outline {
    struct point inner[3]; /* on the hole: at the first root, the second, the next tooth's first */
    struct point outer[5];
};

static struct outline outline_of(const struct wheel *wheel, uint32_t tooth)
{
    float step = 2.0f * PI / (float)wheel->teeth;
    float middle = step * (float)tooth;
    float root = wheel->pitch - 0.5f * wheel->depth, tip = wheel->pitch + 0.5f * wheel->depth;
    float first = middle - 0.375f * step, second = middle + 0.375f * step;
    float next = middle + 0.625f * step;
    return (struct outline){
        .inner = {on_circle(wheel->hole, first), on_circle(wheel->hole, second),
                  on_circle(wheel->hole, next)},
        .outer = {on_circle(root, first), on_circle(tip, middle - 0.125f * step),
                  on_circle(tip, middle + 0.125f * step), on_circle(root, second),
                  on_circle(root, next)},
    };
}

/* Front (z > 0) or back. */
static void add_face(struct builder *b, const struct outline *o, float z)
{
    float normal = z > 0.0f ? 1.0f : -1.0f;
    uint32_t inner[3], outer[5];
    for (int i = 0; i < 3; i++)
        inner[i] = add(b, o->inner[i], z, 0.0f, 0.0f, normal);
    for (int i = 0; i < 5; i++)
        outer[i] = add(b, o->outer[i], z, 0.0f, 0.0f, normal);
    if (z > 0.0f) {
        add_quad(b, inner[0], outer[0], outer[3], inner[1]);
        add_quad(b, inner[1], outer[3], outer[4], inner[2]);
        add_quad(b, outer[0], outer[1], outer[2], outer[3]);
    } else {
        add_quad(b, inner[0], inner[1], outer[3], outer[0]);
        add_quad(b, inner[1], inner[2], outer[4], outer[3]);
        add_quad(b, outer[0], outer[3], outer[2], outer[1]);
    }
}

/* The band from p to q, at right angles to the faces; looks to the right of that way. */
static void add_band(struct builder *b, struct point p, struct point q, float z)
{
    float dx = q.x - p.x, dy = q.y - p.y, scale = 1.0f / square_root(dx * dx + dy * dy);
    float nx = dy * scale, ny = -dx * scale;
    uint32_t back = add(b, p, -z, nx, ny, 0.0f);
    add(b, q, -z, nx, ny, 0.0f);
    add(b, q, z, nx, ny, 0.0f);
    add(b, p, z, nx, ny, 0.0f);
    add_quad(b, back, back + 1, back + 2, back + 3);
}

/* The hole's wall looks towards the axis; its normals are the cylinder's. */
static void add_wall(struct builder *b, struct point p, struct point q, float z, float radius)
{
    float scale = -1.0f / radius;
    uint32_t back = add(b, p, -z, p.x * scale, p.y * scale, 0.0f);
    add(b, p, z, p.x * scale, p.y * scale, 0.0f);
    add(b, q, z, q.x * scale, q.y * scale, 0.0f);
    add(b, q, -z, q.x * scale, q.y * scale, 0.0f);
    add_quad(b, back, back + 1, back + 2, back + 3);
}

void wheel_build(const struct wheel *wheel, struct vertex *vertices, uint16_t *indices,
                 uint32_t first)
{
    struct builder b = {vertices, indices, first};
    float z = 0.5f * wheel->thickness;
    for (uint32_t tooth = 0; tooth < wheel->teeth; tooth++) {
        struct outline o = outline_of(wheel, tooth);
        add_face(&b, &o, z);
        add_face(&b, &o, -z);
        for (int i = 0; i < 4; i++)
            add_band(&b, o.outer[i], o.outer[i + 1], z);
        for (int i = 0; i < 2; i++)
            add_wall(&b, o.inner[i], o.inner[i + 1], z, wheel->hole);
    }
}
