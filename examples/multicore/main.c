/* Four cores, one band of the picture each: woken through their mailboxes, telling how far they are
 * on the one UART under a lock. */
#include "draw.h"
#include "multicore.h"

#define WIDTH 640u
#define HEIGHT 480u
#define BAND (HEIGHT / CORES)
#define PARTS 4u /* of a band: so often a core says something */

#define LOCAL 0x40000000u /* the block of the core's own things: mailboxes, timers */
#define MAILBOX_SET(core, mailbox) (LOCAL + 0x80 + 16 * (core) + 4 * (mailbox))
#define START_MAILBOX 3u

#define TIMEOUT 1000000u

static struct framebuffer fb;
static struct palette palettes[CORES];

/* Everything below is written by more than one core; `words` guards the UART and `rows_done`. */
static volatile uint32_t words;
static volatile uint32_t rows_done;
static volatile uint32_t awake[CORES], finished[CORES];

static void say(uint32_t core, const char *text, uint32_t value, const char *rest)
{
    lock(&words);
    print("core ");
    print_number(core);
    print(text);
    print_number(value);
    print_line(rest);
    unlock(&words);
}

static void draw_band(uint32_t core)
{
    uint32_t start = microseconds();
    palette_make(&palettes[core], core);
    for (uint32_t part = 1; part <= PARTS; part++) {
        uint32_t first = core * BAND + (part - 1) * BAND / PARTS;
        for (uint32_t y = first; y < first + BAND / PARTS; y++)
            fractal_row(&fb, y, &palettes[core]);
        lock(&words);
        rows_done += BAND / PARTS;
        unlock(&words);
        say(core, ": ", 100 * part / PARTS, " %");
    }
    say(core, ": my band took ", (microseconds() - start) / 1000, " ms");
}

/* What cores 1 to 3 do. */
void core_main(uint32_t core)
{
    say(core, ": awake at ", microseconds(), " us");
    awake[core] = 1;
    send_event();
    draw_band(core);
    finished[core] = 1;
    send_event();
}

static void wake(uint32_t core)
{
    uint32_t start = microseconds();
    put32(MAILBOX_SET(core, START_MAILBOX), (uint32_t)core_entry);
    send_event(); /* the firmware's stub waits with WFE and then looks into the mailbox */
    while (!awake[core])
        if (passed(start, TIMEOUT)) {
            lock(&words);
            print_value("core without an answer:", core);
            panic("a core does not wake up");
        }
}

void main(void)
{
    uart_start();
    print_line("multicore: four cores, one band each");
    fb = framebuffer_open(WIDTH, HEIGHT, 1); /* before the caches: the firmware sees memory only */
    memory_map_make(&fb);
    memory_map_use();

    uint32_t start = microseconds();
    for (uint32_t core = 1; core < CORES; core++)
        wake(core);
    draw_band(0);
    for (uint32_t core = 1; core < CORES; core++)
        while (!finished[core])
            wait_for_event();

    for (uint32_t core = 0; core < CORES; core++) {
        fill(&fb, 8, core * BAND + 8, 78, 22, 0xff000000u);
        draw_text(&fb, 12, core * BAND + 12, 2, "CORE", 0xffffffffu);
        draw_number(&fb, 72, core * BAND + 12, 2, 1, core, 0xffffffffu);
    }
    print_number(rows_done);
    print(" rows by four cores in ");
    print_number((microseconds() - start) / 1000);
    print_line(" ms");
    print_line("done");
    halt();
}
