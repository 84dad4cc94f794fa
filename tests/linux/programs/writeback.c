/* Has a DRM device compose two planes and write the picture back, and compares it.
 *
 * It prints "right" or the number of wrong pixels, or which call failed, which is its exit code.
 */

#include "client.h"

enum { WIDTH = 64, HEIGHT = 48, LEFT = 8, TOP = 4, SIDE = 16 };
enum { WRITEBACK = 18, ALLOW_MODESET = 0x400, XRGB8888 = 0x34325258 };
static const u32 SQUARE = 0x00c08040;

struct buffer { u32 fb, pitch; unsigned char *pixels; };

static struct buffer buffer(u32 width, u32 height)
{
    struct { u32 height, width, bits, flags, handle, pitch; u64 size; } made = {
        height, width, 32, 0, 0, 0, 0};
    struct { u32 handle, pad; u64 offset; } place = {0, 0, 0};
    struct { u32 fb, width, height, format, flags, handles[4], pitches[4], offsets[4]; u64 m[4]; }
        fb = {0, width, height, XRGB8888, 0, {0}, {0}, {0}, {0}};
    need(ASK(0xb2, made), "dumb buffer");
    place.handle = fb.handles[0] = made.handle;
    fb.pitches[0] = made.pitch;
    need(ASK(0xb3, place), "map");
    need(ASK(0xb8, fb), "framebuffer");
    long at = call(MMAP, 0, made.size, 3, 1, device, place.offset);
    need(at > -4096 && at < 0 ? at : 0, "mmap");
    return (struct buffer){fb.fb, made.pitch, (unsigned char *)at};
}

static u32 pattern(u32 x, u32 y)
{
    return (x * 4) << 16 | (y * 5) << 8 | ((x ^ y) & 0xff);
}

static u32 objects[8], counts[8], numbers[40];
static u64 values[40];
static int object_count, value_count;

static void set(const char *name, u64 value)
{
    int at = object_count - 1;
    u32 type = at == 0 ? CONNECTOR : at == 1 ? CRTC : PLANE;
    numbers[value_count] = property(objects[at], type, name, 0);
    values[value_count++] = value;
    counts[at]++;
}

static void show(u32 plane, u32 crtc, struct buffer what, u32 x, u32 y, u32 width, u32 height)
{
    objects[object_count++] = plane;
    set("FB_ID", what.fb);
    set("CRTC_ID", crtc);
    set("SRC_X", 0);
    set("SRC_Y", 0);
    set("SRC_W", (u64)width << 16);
    set("SRC_H", (u64)height << 16);
    set("CRTC_X", x);
    set("CRTC_Y", y);
    set("CRTC_W", width);
    set("CRTC_H", height);
}

void _start(void)
{
    device = call(OPENAT, -100, (long)"/dev/dri/card0", 2, 0, 0, 0);
    need(device, "card0");
    can(2);
    can(3);
    can(5);

    u32 crtcs[16], connectors[16];
    struct { u64 fbs, crtcs, connectors, encoders; u32 counts[4], limits[4]; } there = {
        0, (u64)crtcs, (u64)connectors, 0, {0, 16, 16, 0}, {0}};
    need(ASK(0xa0, there), "resources");
    u32 connector = 0, encoder = 0;
    for (u32 n = 0; n < there.counts[2]; n++) {
        u32 encoders[8];
        struct { u64 encoders, modes, props, values; u32 count_modes, count_props, count_encoders;
            u32 encoder, connector, type, number, connection, size[2], subpixel, pad; } one = {0};
        one.encoders = (u64)encoders;
        one.count_encoders = 8;
        one.connector = connectors[n];
        need(ASK(0xa7, one), "connector");
        if (one.type == WRITEBACK && one.count_encoders)
            connector = connectors[n], encoder = encoders[0];
    }
    need(connector ? 0 : -2, "a connector for write-back");
    u32 way[5] = {encoder, 0, 0, 0, 0};
    need(ASK(0xa6, way), "encoder");
    u32 number = 0;
    while (number < there.counts[1] && !(way[3] >> number & 1))
        number++;

    u32 planes[64], free[2], found = 0;
    struct { u64 planes; u32 count, pad; } many = {(u64)planes, 64, 0};
    need(ASK(0xb5, many), "planes");
    for (u32 n = 0; n < many.count && found < 2; n++) {
        u64 type = 0;
        struct { u32 plane, crtc, fb, crtcs, gamma, formats; u64 list; } one = {planes[n]};
        need(ASK(0xb6, one), "plane");
        property(planes[n], PLANE, "type", &type);
        if (one.crtcs >> number & 1 && !one.crtc && type == (found ? 0 : 1))
            free[found++] = planes[n], n = -1;
    }
    need(found == 2 ? 0 : -2, "two planes");

    struct buffer picture = buffer(WIDTH, HEIGHT), square = buffer(SIDE, SIDE);
    struct buffer target = buffer(WIDTH, HEIGHT);
    for (u32 y = 0; y < HEIGHT; y++)
        for (u32 x = 0; x < WIDTH; x++)
            ((u32 *)(picture.pixels + y * picture.pitch))[x] = pattern(x, y);
    for (u32 y = 0; y < SIDE; y++)
        for (u32 x = 0; x < SIDE; x++)
            ((u32 *)(square.pixels + y * square.pitch))[x] = SQUARE;

    struct { u32 clock; u16 h[5], v[5]; u32 rate, flags, type; char name[32]; } mode = {
        360, {WIDTH, 80, 90, 100, 0}, {HEIGHT, 50, 52, 60, 0}, 60, 0, 0, "ours"};
    struct { u64 data; u32 length, blob; } blob = {(u64)&mode, 68, 0};
    need(ASK(0xbd, blob), "mode");

    static int fence = -1;
    objects[object_count++] = connector;
    set("CRTC_ID", crtcs[number]);
    set("WRITEBACK_FB_ID", target.fb);
    set("WRITEBACK_OUT_FENCE_PTR", (u64)&fence);
    objects[object_count++] = crtcs[number];
    set("MODE_ID", blob.blob);
    set("ACTIVE", 1);
    show(free[0], crtcs[number], picture, 0, 0, WIDTH, HEIGHT);
    show(free[1], crtcs[number], square, LEFT, TOP, SIDE, SIDE);
    struct { u32 flags, count; u64 objects, counts, numbers, values, reserved, user; } commit = {
        ALLOW_MODESET, object_count, (u64)objects, (u64)counts, (u64)numbers, (u64)values, 0, 0};
    need(ASK(0xbc, commit), "commit");

    struct { int file; short events, found; } wait = {fence, 1, 0};
    long seconds[2] = {5, 0};
    need(call(PPOLL, (long)&wait, 1, (long)seconds, 0, 0, 0) == 1 ? 0 : -110, "the fence");

    u64 wrong = 0;
    for (u32 y = 0; y < HEIGHT; y++)
        for (u32 x = 0; x < WIDTH; x++) {
            int inside = x - LEFT < SIDE && y - TOP < SIDE;
            u32 wanted = inside ? SQUARE : pattern(x, y);
            u32 found_here = ((u32 *)(target.pixels + y * target.pitch))[x];
            wrong += (found_here & 0xffffff) != wanted;
        }
    if (!wrong) {
        say("right\n");
        end(0);
    }
    say_number(wrong);
    say(" wrong pixels\n");
    end(100);
}
