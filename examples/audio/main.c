/* A C-major arpeggio, up and down, and the chord: synthesised 40 ms ahead of the DMA that feeds the PWM,
 * with the wave on the screen. */
#include "draw.h"
#include "synth.h"

#define WIDTH 640u
#define HEIGHT 480u
#define MIDDLE 220
#define SCALE_SHIFT 3 /* pixels are so much coarser than levels */
#define HIGHEST 130
#define BARS_LEFT 40u
#define BARS_BOTTOM 450u
#define BAR_STEP 14u

#define BACKGROUND RGB(16u, 20u, 32u)
#define AXIS RGB(44u, 50u, 66u)
#define WAVE RGB(90u, 220u, 160u)
#define BAR RGB(255u, 170u, 40u)
#define TEXT RGB(200u, 210u, 225u)

#define C4 PITCH(261.626)
#define E4 PITCH(329.628)
#define G4 PITCH(391.995)
#define C5 PITCH(523.251)

/* When (in buffers of 40 ms), what, and where between left and right. */
struct note {
    uint32_t at, pitch, place;
    const char *name;
};

enum { BUFFERS = 40 };

static const struct note tune[] = {
    {0, C4, 64, "C4"},   {4, E4, 100, "E4"},  {8, G4, 156, "G4"},  {12, C5, 192, "C5"},
    {16, G4, 156, "G4"}, {20, E4, 100, "E4"}, {24, C4, 64, "C4"},  {28, C4, 64, "C4"},
    {28, E4, 100, "E4"}, {28, G4, 156, "G4"}, {28, C5, 192, "C5"},
};
enum { NOTES = sizeof tune / sizeof *tune };

static struct framebuffer fb;
static struct {
    uint32_t top, height;
} drawn[WIDTH]; /* the wave in each column */

static uint32_t screen_y(uint32_t level)
{
    int32_t y = ((int32_t)level - SOUND_RANGE / 2) / (1 << SCALE_SHIFT);
    if (y > HIGHEST)
        y = HIGHEST;
    if (y < -HIGHEST)
        y = -HIGHEST;
    return (uint32_t)(MIDDLE - y);
}

/* Two frames a column; only what changes is touched. */
static void draw_wave(const struct frame *frames)
{
    uint32_t last = screen_y(frames[0].level[0]);
    for (uint32_t x = 0; x < WIDTH; x++) {
        uint32_t y = screen_y(frames[2 * x].level[0]);
        uint32_t top = y < last ? y : last;
        uint32_t height = (y < last ? last - y : y - last) + 2;
        fill(&fb, x, drawn[x].top, 1, drawn[x].height, BACKGROUND);
        fill(&fb, x, MIDDLE, 1, 1, AXIS);
        fill(&fb, x, top, 1, height, WAVE);
        drawn[x].top = top;
        drawn[x].height = height;
        last = y;
    }
}

/* How loud each buffer was, side by side. */
static void draw_loudness(const struct frame *frames, uint32_t buffer)
{
    uint32_t highest = SOUND_RANGE / 2;
    for (uint32_t i = 0; i < SOUND_FRAMES; i++)
        if (frames[i].level[0] > highest)
            highest = frames[i].level[0];
    uint32_t height = (highest - SOUND_RANGE / 2) / 12 + 1;
    fill(&fb, BARS_LEFT + buffer * BAR_STEP, BARS_BOTTOM - height, BAR_STEP - 4, height, BAR);
}

static void strike(const struct note *note, uint32_t column)
{
    synth_strike(note->pitch, note->place);
    print(note->name);
    print(" ");
    if (column == 0)
        fill(&fb, 40, 40, 4 * 3 * TEXT_WIDTH * 4, TEXT_HEIGHT * 4, BACKGROUND);
    draw_text(&fb, 40 + column * 3 * TEXT_WIDTH * 4, 40, 4, note->name, TEXT);
}

void main(void)
{
    uart_start();
    print_line("audio: an arpeggio out of the PWM, fed by the DMA");
    fb = framebuffer_open(WIDTH, HEIGHT, 1);
    fill(&fb, 0, 0, WIDTH, HEIGHT, BACKGROUND);
    synth_start();
    sound_start();

    uint32_t note = 0;
    for (uint32_t buffer = 0; buffer < BUFFERS; buffer++) {
        struct frame *frames = sound_buffer();
        for (uint32_t column = 0; note < NOTES && tune[note].at == buffer; column++)
            strike(&tune[note++], column);
        synth_fill(frames, SOUND_FRAMES);
        sound_queue(buffer == BUFFERS - 1);
        draw_wave(frames);
        draw_loudness(frames, buffer);
    }
    uint32_t late = sound_end();
    print("\n");
    print_number(BUFFERS * SOUND_FRAMES);
    print(" frames played, ");
    print_number(late);
    print_line(" buffers late");
    print_line("done");
    halt();
}
