/* The smallest picture: ask the firmware for a framebuffer on mailbox channel 1 and fill it with
 * x XOR y. No GPU program at all. */
#include "mailbox.h"

#define WIDTH 640u
#define HEIGHT 480u

/* The message of channel 1. The firmware fills in pitch, pointer and size. */
struct request {
    uint32_t width, height;
    uint32_t virtual_width, virtual_height;
    uint32_t pitch;
    uint32_t depth;
    uint32_t x_offset, y_offset;
    uint32_t pointer;
    uint32_t size;
};

static volatile struct request request __attribute__((aligned(16)));

void main(void)
{
    uart_start();
    print_line("framebuffer: x XOR y");

    request.width = request.virtual_width = WIDTH;
    request.height = request.virtual_height = HEIGHT;
    request.depth = 32;
    mailbox_call(MAILBOX_FRAMEBUFFER, &request);
    if (!request.pointer)
        panic("the firmware gives no framebuffer");
    print_value("framebuffer at bus address", request.pointer);

    uint8_t *row = from_bus_address(request.pointer);
    for (uint32_t y = 0; y < HEIGHT; y++) {
        volatile uint32_t *pixels = (volatile uint32_t *)row;
        for (uint32_t x = 0; x < WIDTH; x++) {
            uint32_t pattern = (x ^ y) & 0xff;
            pixels[x] = 0xff000000u | pattern << 16 | (x * 255 / WIDTH) << 8 | (y * 255 / HEIGHT);
        }
        row += request.pitch;
    }

    print_line("done");
    halt();
}
