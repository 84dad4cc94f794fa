/* Twelve QPUs add up an array, each its own part: once through the texture units, started by the V3D's queue;
 * once through the VPM's DMA, started by the firmware. The CPU adds, too, and compares. */
#include "draw.h"
#include "qpu.h"
#include "sums.h"
#include "v3d.h"

#define WIDTH 640u
#define HEIGHT 480u

enum {
    LANES = 16,
    VECTORS = 256, /* of a QPU */
    PART = VECTORS * LANES,
    WORDS = QPUS * PART,
    AHEAD = 2 * LANES, /* so many words after the end are fetched and thrown away */
    UNIFORMS = 3,
};

#define BARS_LEFT 40u
#define BARS_BOTTOM 350u
#define BAR_STEP 47u
#define BAR_WIDTH 19u
#define BAR_UNIT 320000u /* of a sum: one pixel */
#define BAR_HIGHEST 300u
#define LINE_Y(line) (370u + 24 * (line))

#define BACKGROUND RGB(16u, 20u, 32u)
#define TEXT RGB(200u, 210u, 225u)
#define BAD RGB(255u, 60u, 50u)

enum way { BY_QUEUE, BY_FIRMWARE, WAYS };

static const char *const titles[WAYS] = {"TMU, QUEUE", "DMA, FIRMWARE"};
static const uint32_t colours[WAYS] = {RGB(90u, 170u, 255u), RGB(255u, 170u, 40u)};

static uint32_t array[WORDS + AHEAD] __attribute__((aligned(64), section(".noinit")));
static volatile uint32_t results[WAYS][QPUS][LANES] __attribute__((aligned(64)));
static uint32_t uniforms[WAYS][QPUS][UNIFORMS];
static struct qpu_start starts[WAYS][QPUS] __attribute__((aligned(16)));

static struct framebuffer fb;

/* Noise; the parts in the middle have the higher values. */
static void array_fill(void)
{
    uint32_t random = 1;
    for (uint32_t part = 0; part < QPUS; part++) {
        uint32_t weight = (part + 1) * (QPUS - part);
        for (uint32_t i = 0; i < PART; i++) {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            array[part * PART + i] = (random >> 16) * weight >> 6;
        }
    }
}

static uint32_t sum_by_cpu(const uint32_t *words, uint32_t count)
{
    uint32_t sum = 0;
    while (count--)
        sum += *words++;
    return sum;
}

static void starts_make(enum way way, uint32_t program)
{
    for (uint32_t part = 0; part < QPUS; part++) {
        uniforms[way][part][0] = bus_address(&array[part * PART]);
        uniforms[way][part][1] = VECTORS;
        uniforms[way][part][2] = bus_address(results[way][part]);
        starts[way][part].uniforms = bus_address(uniforms[way][part]);
        starts[way][part].code = bus_address(&sums[program / 4]);
    }
}

static void say(const char *who, uint32_t sum, uint32_t duration)
{
    print(who);
    print(": ");
    print_number(sum);
    print(" in ");
    print_number(duration);
    print_line(" us");
}

/* One line below the bars: who, the sum, how long. */
static void draw_line(uint32_t line, const char *who, uint32_t colour, uint32_t sum, uint32_t duration)
{
    draw_text(&fb, BARS_LEFT, LINE_Y(line), 2, who, colour);
    draw_number(&fb, BARS_LEFT + 180, LINE_Y(line), 2, 10, sum, colour);
    draw_number(&fb, BARS_LEFT + 330, LINE_Y(line), 2, 6, duration, TEXT);
    draw_text(&fb, BARS_LEFT + 330 + 7 * 2 * TEXT_WIDTH, LINE_Y(line), 2, "US", TEXT);
}

/* Every part's result against the CPU's; gives the number of wrong ones. */
static uint32_t check(enum way way, const uint32_t right[QPUS])
{
    uint32_t wrong = 0;
    for (uint32_t part = 0; part < QPUS; part++) {
        bool good = true;
        for (uint32_t lane = 0; lane < LANES; lane++)
            good &= results[way][part][lane] == right[part];
        wrong += !good;
        uint32_t height = results[way][part][0] / BAR_UNIT;
        if (height > BAR_HIGHEST)
            height = BAR_HIGHEST;
        fill(&fb, BARS_LEFT + part * BAR_STEP + way * (BAR_WIDTH + 1), BARS_BOTTOM - height, BAR_WIDTH,
             height, good ? colours[way] : BAD);
    }
    return wrong;
}

void main(void)
{
    uart_start();
    print_line("qpu_sum: twelve QPUs add up an array");
    v3d_start();
    fb = framebuffer_open(WIDTH, HEIGHT, 1);
    fill(&fb, 0, 0, WIDTH, HEIGHT, BACKGROUND);
    draw_text(&fb, BARS_LEFT, 24, 3, "SUMS OF TWELVE QPUS", TEXT);

    array_fill();
    uint32_t right[QPUS], total = 0;
    uint32_t start = microseconds();
    for (uint32_t part = 0; part < QPUS; part++) {
        right[part] = sum_by_cpu(&array[part * PART], PART);
        total += right[part];
    }
    uint32_t duration = microseconds() - start;
    say("CPU", total, duration);
    draw_line(WAYS, "CPU", TEXT, total, duration);

    starts_make(BY_QUEUE, SUMS_SUM_TMU);
    starts_make(BY_FIRMWARE, SUMS_SUM_DMA);
    uint32_t wrong = 0;
    for (enum way way = 0; way < WAYS; way++) {
        start = microseconds();
        if (way == BY_QUEUE)
            qpu_run(starts[way], QPUS);
        else
            qpu_run_by_firmware(starts[way], QPUS);
        duration = microseconds() - start;

        uint32_t sum = 0;
        for (uint32_t part = 0; part < QPUS; part++)
            sum += results[way][part][0];
        wrong += check(way, right);
        say(titles[way], sum, duration);
        draw_line(way, titles[way], sum == total ? colours[way] : BAD, sum, duration);
    }
    if (wrong) {
        print_value("wrong parts:", wrong);
        panic("the QPUs' sums are wrong");
    }
    print_line("all sums agree");
    halt();
}
