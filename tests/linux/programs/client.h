/* What clients of a DRM device without a C library have in common: aarch64-linux-gnu-gcc -O1 -static
 * -nostdlib -ffreestanding -fno-stack-protector
 *
 * A call that fails is named, and its number among all is the exit code.
 */

typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned short u16;

enum { OPENAT = 56, IOCTL = 29, MMAP = 222, WRITE = 64, PPOLL = 73, EXIT = 93 };
enum { CRTC = 0xcccccccc, CONNECTOR = 0xc0c0c0c0, PLANE = 0xeeeeeeee };

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

static void say(const char *text)
{
    long length = 0;
    while (text[length])
        length++;
    call(WRITE, 1, (long)text, length, 0, 0, 0);
}

static void say_number(u64 number)
{
    char digits[24];
    int at = 23;
    digits[at] = 0;
    do {
        digits[--at] = '0' + number % 10;
        number /= 10;
    } while (number);
    say(digits + at);
}

static int device, step;

static void end(int code)
{
    call(EXIT, code, 0, 0, 0, 0, 0);
    for (;;)
        ;
}

static void need(long result, const char *what)
{
    step++;
    if (result >= 0)
        return;
    say(what);
    say(" fails: ");
    say_number(-result);
    say("\n");
    end(step);
}

/* _IOWR('d', number, argument) */
#define ASK(number, argument)                                                                     \
    call(IOCTL, device, 3u << 30 | sizeof(argument) << 16 | 'd' << 8 | (number),                  \
         (long)&(argument), 0, 0, 0)

static void can(u64 capability)
{
    u64 pair[2] = {capability, 1};
    need(call(IOCTL, device, 1u << 30 | 16 << 16 | 'd' << 8 | 0x0d, (long)pair, 0, 0, 0), "cap");
}

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* A property of an object by its name: its number; the value goes to *value. */
static u32 property(u32 object, u32 type, const char *name, u64 *value)
{
    u32 numbers[64];
    u64 values[64];
    struct { u64 numbers, values; u32 count, object, type, pad; } all = {
        (u64)numbers, (u64)values, 64, object, type, 0};
    need(ASK(0xb9, all), "properties");
    for (u32 n = 0; n < all.count; n++) {
        struct { u64 values, enums; u32 number, flags; char name[32]; u32 counts[2]; } one = {0};
        one.number = numbers[n];
        need(ASK(0xaa, one), "property");
        if (same(one.name, name)) {
            if (value)
                *value = values[n];
            return one.number;
        }
    }
    need(-1, name);
    return 0;
}
