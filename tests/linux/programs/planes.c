/* Shows planes as its arguments say, over each other on the screen, until it is killed.
 *
 * An argument is a plane, lowest first; numbers with commas between them:
 *   0 format, 1 modifier, 2 width, 3 height of the buffer, 4 to 6 offsets and 7 to 9 pitches of its
 *   parts, 10 bytes, 11 to 14 source (16.16), 15 to 18 place, 19 alpha, 20 blend mode, 21 rotation,
 *   22 encoding of colour, 23 range. Properties of 99 stay as they are.
 * Bytes of the buffer: the top ones of x -> 1664525 x + 1013904223, from the plane's number on.
 */

#include "client.h"

enum { MODIFIERS = 2, NUMBERS = 24, KEEP = 99, MOST = 64 };

static u64 given[NUMBERS];

static void read(const char *text)
{
    int at = 0;
    for (u32 n = 0; n < NUMBERS; n++)
        given[n] = 0;
    int minus = 0;
    for (; *text && at < NUMBERS; text++) {
        if (*text == ',')
            given[at] = minus ? -given[at] : given[at], minus = 0, at++;
        else if (*text == '-')
            minus = 1;
        else
            given[at] = given[at] * 10 + *text - '0';
    }
    if (minus)
        given[at] = -given[at];
}

static u32 buffer(u32 seed)
{
    struct { u32 height, width, bits, flags, handle, pitch; u64 size; } made = {
        (given[10] + 4095) / 4096, 4096, 8, 0, 0, 0, 0};
    struct { u32 handle, pad; u64 offset; } place = {0, 0, 0};
    struct { u32 fb, width, height, format, flags, handles[4], pitches[4], offsets[4]; u64 m[4]; }
        fb = {0, given[2], given[3], given[0], MODIFIERS, {0}, {0}, {0}, {0}};
    need(ASK(0xb2, made), "dumb buffer");
    place.handle = made.handle;
    need(ASK(0xb3, place), "map");
    for (u32 n = 0; n < 3 && given[7 + n]; n++) {
        fb.handles[n] = made.handle;
        fb.offsets[n] = given[4 + n];
        fb.pitches[n] = given[7 + n];
        fb.m[n] = given[1];
    }
    need(ASK(0xb8, fb), "framebuffer");
    long at = call(MMAP, 0, made.size, 3, 1, device, place.offset);
    need(at > -4096 && at < 0 ? at : 0, "mmap");
    u32 x = seed;
    for (u64 n = 0; n < given[10]; n++) {
        x = x * 1664525 + 1013904223;
        ((unsigned char *)at)[n] = x >> 24;
    }
    return fb.fb;
}

static u32 objects[MOST], counts[MOST], numbers[1024];
static u64 values[1024];
static int object_count, value_count;

static void set(u32 type, const char *name, u64 value)
{
    int at = object_count - 1;
    numbers[value_count] = property(objects[at], type, name, 0);
    values[value_count++] = value;
    counts[at]++;
}

static void option(const char *name, u64 value)
{
    if (value != KEEP)
        set(PLANE, name, value);
}

void start(long *stack)
{
    long count = stack[0];
    char **texts = (char **)(stack + 1);
    device = call(OPENAT, -100, (long)"/dev/dri/card0", 2, 0, 0, 0);
    need(device, "card0");
    can(2);
    can(3);

    u32 crtcs[16];
    struct { u64 fbs, crtcs, connectors, encoders; u32 counts[4], limits[4]; } there = {
        0, (u64)crtcs, 0, 0, {0, 16, 0, 0}, {0}};
    need(ASK(0xa0, there), "resources");
    u32 number = 0;
    for (; number < there.counts[1]; number++) {
        u64 active = 0;
        property(crtcs[number], CRTC, "ACTIVE", &active);
        if (active)
            break;
    }
    need(number < there.counts[1] ? 0 : -2, "a display that is on");
    u32 crtc = crtcs[number];

    u32 planes[MOST];
    struct { u64 planes; u32 count, pad; } many = {(u64)planes, MOST, 0};
    need(ASK(0xb5, many), "planes");
    u32 next = 0;
    /* The primary plane comes first among those of a display, whatever their numbers are. */
    for (int pass = 0; pass < 2; pass++)
        for (u32 n = 0; n < many.count; n++) {
            u64 type = 0;
            struct { u32 plane, crtc, fb, crtcs, gamma, formats; u64 list; } one = {planes[n]};
            need(ASK(0xb6, one), "plane");
            property(planes[n], PLANE, "type", &type);
            if ((type == 1) != !pass || !(one.crtcs >> number & 1))
                continue;
            if (type == 2 || (one.crtc && one.crtc != crtc))
                continue;
            int used = next < count - 1;
            if (!used && one.crtc != crtc)
                continue;
            objects[object_count++] = planes[n];
            if (!used) {
                set(PLANE, "FB_ID", 0);
                set(PLANE, "CRTC_ID", 0);
                continue;
            }
            read(texts[++next]);
            set(PLANE, "FB_ID", buffer(next));
            set(PLANE, "CRTC_ID", crtc);
            set(PLANE, "SRC_X", given[11]);
            set(PLANE, "SRC_Y", given[12]);
            set(PLANE, "SRC_W", given[13]);
            set(PLANE, "SRC_H", given[14]);
            set(PLANE, "CRTC_X", given[15]);
            set(PLANE, "CRTC_Y", given[16]);
            set(PLANE, "CRTC_W", given[17]);
            set(PLANE, "CRTC_H", given[18]);
            option("alpha", given[19]);
            option("pixel blend mode", given[20]);
            option("rotation", given[21]);
            option("COLOR_ENCODING", given[22]);
            option("COLOR_RANGE", given[23]);
        }
    need(next == count - 1 ? 0 : -7, "so many planes");
    struct { u32 flags, count; u64 objects, counts, numbers, values, reserved, user; } commit = {
        0, object_count, (u64)objects, (u64)counts, (u64)numbers, (u64)values, 0, 0};
    need(ASK(0xbc, commit), "commit");
    say("shown\n");
    call(PPOLL, 0, 0, 0, 0, 0, 0);
    end(0);
}

__asm__(".globl _start\n_start: mov x0, sp\n b start\n");
