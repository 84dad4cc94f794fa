/* Three timers interrupt; the main program sleeps (WFI), and shows what they have counted: a running
 * light and a number each, the first one's ticks on the LED, a line on the UART every second. */
#include "draw.h"
#include "irq_timer.h"

#define WIDTH 640u
#define HEIGHT 480u

#define LAMPS 20u
#define LAMP 24u /* its edge, with a gap to the next one in STEP */
#define STEP 28u
#define LEFT 40u
#define ROW_HEIGHT 140u
#define ROW_Y(row) (40u + (row) * ROW_HEIGHT)
#define DIGITS 6u
#define NUMBER_X (LEFT + LAMPS * STEP - DIGITS * TEXT_WIDTH * 4)

#define BACKGROUND RGB(16u, 20u, 32u)
#define OFF RGB(44u, 50u, 66u)
#define TEXT RGB(200u, 210u, 225u)

enum { A_SECOND = 10 }; /* ticks of the system timer */

static const uint32_t colours[TIMERS] = {
    RGB(60u, 220u, 90u),
    RGB(255u, 170u, 40u),
    RGB(90u, 170u, 255u),
};

static struct framebuffer fb;
static uint32_t shown[TIMERS];

/* There and back again. */
static uint32_t lamp_of(uint32_t tick)
{
    uint32_t place = tick % (2 * (LAMPS - 1));
    return place < LAMPS ? place : 2 * (LAMPS - 1) - place;
}

static void draw_lamp(uint32_t row, uint32_t lamp, uint32_t colour)
{
    fill(&fb, LEFT + lamp * STEP, ROW_Y(row) + 48, LAMP, LAMP, colour);
}

static void draw_count(uint32_t row, uint32_t count)
{
    fill(&fb, NUMBER_X, ROW_Y(row), DIGITS * TEXT_WIDTH * 4, TEXT_HEIGHT * 4, BACKGROUND);
    draw_number(&fb, NUMBER_X, ROW_Y(row), 4, DIGITS, count, colours[row]);
}

static void draw_period(uint32_t row)
{
    uint32_t x = LEFT, y = ROW_Y(row) + 84;
    draw_text(&fb, x, y, 2, "EVERY", TEXT);
    draw_number(&fb, x + 6 * 2 * TEXT_WIDTH, y, 2, 3, timer_periods[row] / 1000, TEXT);
    draw_text(&fb, x + 10 * 2 * TEXT_WIDTH, y, 2, "MS", TEXT);
}

static void draw_all(void)
{
    fill(&fb, 0, 0, WIDTH, HEIGHT, BACKGROUND);
    for (uint32_t row = 0; row < TIMERS; row++) {
        if (!timer_periods[row])
            continue;
        draw_text(&fb, LEFT, ROW_Y(row), 4, timer_names[row], TEXT);
        for (uint32_t lamp = 0; lamp < LAMPS; lamp++)
            draw_lamp(row, lamp, OFF);
        draw_lamp(row, 0, colours[row]);
        draw_period(row);
        draw_count(row, 0);
    }
}

static void report(uint32_t elapsed)
{
    print_number(elapsed);
    print(" us:");
    for (uint32_t timer = 0; timer < TIMERS; timer++)
        if (timer_periods[timer]) {
            print(timer ? ", " : " ");
            print(timer_names[timer]);
            print(" ");
            print_number(ticks[timer]);
        }
    print_line("");
}

static bool is_news(void)
{
    for (uint32_t timer = 0; timer < TIMERS; timer++)
        if (ticks[timer] != shown[timer])
            return true;
    return false;
}

static void show(void)
{
    for (uint32_t timer = 0; timer < TIMERS; timer++) {
        uint32_t count = ticks[timer];
        if (count == shown[timer])
            continue;
        draw_lamp(timer, lamp_of(shown[timer]), OFF);
        draw_lamp(timer, lamp_of(count), colours[timer]);
        draw_count(timer, count);
        if (timer == SYSTEM_TIMER && led_is_behind_firmware())
            led_switch_by_firmware(count & 1);
        shown[timer] = count;
    }
}

/* No interrupt may slip in between the last look and WFI, or its tick would be shown only after the next
 * one. WFI wakes up for a masked interrupt, too; it is taken as soon as the mask is lifted. */
static void sleep(void)
{
    interrupts_mask();
    if (!is_news())
        wait_for_interrupt();
    interrupts_unmask();
}

void main(void)
{
    uart_start();
    print_line("irq_timer: interrupts count, the program sleeps");
    led_start();
    fb = framebuffer_open(WIDTH, HEIGHT, 1);
    draw_all();

    timers_start();
    uint32_t start = microseconds(), next = A_SECOND;
    interrupts_on();
    for (;;) {
        show();
        if (ticks[SYSTEM_TIMER] >= next) {
            report(microseconds() - start);
            next += A_SECOND;
        }
        sleep();
    }
}
